"""Writes odradek/protocol/message_types from kio's schemas: a module for each API, a class for each struct.

    python tools/generate_messages.py

A canonical class has the fields of the newest version, and those fields of older versions that the broker still honours
(``OLDER_FIELDS``). A field is nullable if any version of it is. Defaults are Kafka's. If a request and a response use one name
for two structs, the request's class is called ``Request...``; ``REQUEST`` is keyed by its schema name.

``tests/protocol/test_message_types.py`` fails if the checked-in files differ from this tool's output.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kio.schema.index import schema_name_map

from odradek.protocol.api_keys import NEWEST_VERSION, ApiKey
from odradek.protocol.hidden_fields import SECRETS
from odradek.protocol.schemas import FieldSpec, field_specs, load

PACKAGE = Path(__file__).resolve().parent.parent / "odradek/protocol/message_types"

# Fields that the newest version dropped, and that a handler or a response to an older version needs: class -> field ->
# declaration.
OLDER_FIELDS: dict[ApiKey, dict[str, dict[str, str]]] = {
    ApiKey.METADATA: {
        "MetadataRequest": {"include_cluster_authorized_operations": "bool = False"},
        "MetadataResponse": {"cluster_authorized_operations": "int = -2147483648"},
    },
    ApiKey.PRODUCE: {"TopicProduceResponse": {"name": 'str = ""'}},
    ApiKey.FETCH: {
        "FetchRequest": {"replica_id": "int = -1"},
        "FetchTopic": {"topic": 'str = ""'},
        "ForgottenTopic": {"topic": 'str = ""'},
        "FetchableTopicResponse": {"topic": 'str = ""'},
    },
    ApiKey.OFFSET_COMMIT: {
        "OffsetCommitRequest": {"retention_time_ms": "int = -1"},
        "OffsetCommitRequestTopic": {"name": 'str = ""'},
        "OffsetCommitResponseTopic": {"name": 'str = ""'},
    },
    ApiKey.OFFSET_FETCH: {
        "OffsetFetchRequestTopics": {"name": 'str = ""'},
        "OffsetFetchResponseTopics": {"name": 'str = ""'},
    },
    ApiKey.UPDATE_FEATURES: {"UpdateFeaturesResponse": {"results": "Sequence[UpdatableFeatureResult] = ()"}},
}
# Structs of older versions only, with the version to take them from.
OLDER_STRUCTS: dict[ApiKey, dict[str, int]] = {ApiKey.UPDATE_FEATURES: {"UpdatableFeatureResult": 1}}
# Requests with handwritten classes, because their batches stay in the frame.
BY_HAND = {"ProduceRequest": "odradek.protocol.produce_request"}

_PYTHON_TYPES = {"string": "str", "bytes": "bytes", "records": "Sized", "bool": "bool", "uuid": "UUID", "float64": "float"}
_IMPORTS = {"Sequence": "collections.abc", "Sized": "collections.abc", "UUID": "uuid"}
# A tuple has methods of these names, which the fields hide.
_METHODS_OF_TUPLE = {"count", "index"}


def generate() -> dict[str, str]:
    """The package's files by name."""
    files = {f"{api_key.name.lower()}.py": _Module(api_key).source() for api_key in ApiKey}
    files["__init__.py"] = (
        '"""The canonical messages, a module an API (odradek.protocol.messages). Written by tools/generate_messages.py."""\n'
    )
    return files


class _Module:
    """The module of one API while it is generated."""

    def __init__(self, api_key: ApiKey) -> None:
        self._api_key = api_key
        self._older_fields = OLDER_FIELDS.get(api_key, {})
        self._nullable = _nullable_fields(api_key)
        # Classes in the order of their definition, by (kind, schema name).
        self._bodies: dict[tuple[str, str], str] = {}
        self._names: dict[tuple[str, str], str] = {}

    def source(self) -> str:
        version = NEWEST_VERSION[self._api_key]
        entities = {kind: load(self._api_key, version, kind) for kind in ("request", "response")}
        structs = {kind: {each.__name__ for each in _structs(entity)} for kind, entity in entities.items()}
        for kind, entity in entities.items():
            shared = structs["request"] & structs["response"] if kind == "request" else set()
            for name, older in OLDER_STRUCTS.get(self._api_key, {}).items():
                found = {each.__name__: each for each in _structs(load(self._api_key, older, kind))}
                if name in found:
                    self._define(kind, found[name], shared)
            if entity.__name__ in BY_HAND:
                self._names[kind, entity.__name__] = entity.__name__
            else:
                self._define(kind, entity, shared)
        return self._assembled(version)

    def _define(self, kind: str, entity: type[Any], shared: set[str]) -> None:
        name = entity.__name__
        if (kind, name) in self._names:
            return
        specs = field_specs(entity)
        for spec in specs:
            if spec.entity is not None:
                self._define(kind, spec.entity, shared)
        self._names[kind, name] = f"Request{name}" if name in shared else name
        lines = [f"    {spec.name}: {self._declaration(kind, name, spec)}" for spec in specs]
        lines += [f"    {field}: {declared}" for field, declared in self._older_fields.get(name, {}).items()]
        told = f"{_camel(self._api_key)} {kind}"
        doc = f"The {told}." if name.lower() == told.replace(" ", "").lower() else f"Part of the {told}."
        secrets = SECRETS.get(name, set())
        if secrets:
            names = ", ".join(f'"{field}"' for field in sorted(secrets))
            lines += ["", "    def __repr__(self) -> str:", f"        return shown(self, {names})"]
        self._bodies[kind, name] = "\n".join(
            [f"class {self._names[kind, name]}(NamedTuple):", f'    """{doc}"""', *([""] if lines else []), *lines]
        )

    def _declaration(self, kind: str, owner: str, spec: FieldSpec) -> str:
        """The type and default of a field."""
        python = _python_type(spec) if spec.entity is None else self._names[kind, spec.entity.__name__]
        if spec.is_array:
            # The zero id is read as None.
            python = f"Sequence[{python} | None]" if spec.kafka_type == "uuid" else f"Sequence[{python}]"
        default = "()" if spec.is_array and spec.default == () else _literal(spec, python)
        may_be_null = spec.default is None or (kind, owner, spec.name) in self._nullable
        declared = f"{python} | None = {default}" if may_be_null else f"{python} = {default}"
        return f"{declared}  # type: ignore[assignment]" if spec.name in _METHODS_OF_TUPLE else declared

    def _assembled(self, version: int) -> str:
        by_hand = {name: module for name, module in BY_HAND.items() if ("request", name) in self._names}
        body = "\n\n\n".join(self._bodies.values())
        imports = [f"from {module} import {', '.join(names)}" for module, names in _needed(body) if names]
        imports += ["from typing import Any, Final, NamedTuple"]
        imports = sorted(imports)
        if by_hand:
            imports += ["", *(f"from {module} import {name}" for name, module in by_hand.items())]
        if "return shown(" in body:
            imports += ["", "from odradek.protocol.hidden_fields import shown"]
        title = f'"""{_camel(self._api_key)} up to version {version}. Written by tools/generate_messages.py."""'
        tables = [self._table(kind) for kind in ("request", "response")]
        return "\n".join([title, "", *imports, "", "", body, "", "", *tables, ""])

    def _table(self, kind: str) -> str:
        rows = [f'    "{schema}": {name},' for (of, schema), name in self._names.items() if of == kind]
        return "\n".join([f"{kind.upper()}: Final[dict[str, type[Any]]] = {{", *rows, "}"])


def _needed(body: str) -> Iterator[tuple[str, list[str]]]:
    for module in dict.fromkeys(_IMPORTS.values()):
        yield module, [name for name, of in _IMPORTS.items() if of == module and re.search(rf"\b{name}\b", body)]


def _python_type(spec: FieldSpec) -> str:
    return _PYTHON_TYPES.get(spec.kafka_type or "", "int")


def _literal(spec: FieldSpec, python: str) -> str:
    default = spec.default
    if default is MISSING:
        return f"{python}()"
    if default is None or isinstance(default, bool | int | float | tuple):
        return repr(default)
    if isinstance(default, str):
        return '"' + default.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if default == b"":
        return 'b""'
    if spec.entity is not None:
        return f"{python}()"
    raise TypeError(f"{spec.name}: a default of {default!r}")


def _nullable_fields(api_key: ApiKey) -> set[tuple[str, str, str]]:
    """(kind, class, field) for the fields that are nullable in any version."""
    found = set()
    for version in schema_name_map[api_key.name.lower()]:
        for kind in ("request", "response"):
            for entity in _structs(load(api_key, version, kind)):
                for spec in field_specs(entity):
                    # A null time on the wire is -1 in a canonical class, and the zero id is None.
                    if (spec.nullable and spec.kafka_type != "datetime_i64") or (spec.kafka_type == "uuid" and not spec.is_array):
                        found.add((kind, entity.__name__, spec.name))
    return found


def _structs(entity: type[Any]) -> Iterator[type[Any]]:
    yield entity
    for spec in field_specs(entity):
        if spec.entity is not None:
            yield from _structs(spec.entity)


def _camel(api_key: ApiKey) -> str:
    return "".join(part.capitalize() for part in api_key.name.split("_"))


def main() -> None:
    """Write the package, and delete files in it that belong to no API."""
    PACKAGE.mkdir(exist_ok=True)
    files = generate()
    for path in PACKAGE.glob("*.py"):
        if path.name not in files:
            path.unlink()
    for name, source in files.items():
        (PACKAGE / name).write_text(source, encoding="utf-8")


if __name__ == "__main__":
    main()
