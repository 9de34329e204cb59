"""Writes odradek/protocol/message_types from Kafka's own definitions: a module for each API, a class for each struct.

    python tools/generate_messages.py

It also writes odradek/protocol/metadata_records (tools/metadata_records.py), the tables of the coordinators' records, and the
classes of consumer, share and streams groups' records (tools/group_records.py).

The definitions are JSON in the jar of Kafka's clients (``common/message``). A canonical class has the fields of the newest
version that odradek knows, and those fields of older versions that the broker still honours (``OLDER_FIELDS``). A field is
nullable if any version of it is. Defaults are Kafka's. If a request and a response use one name for two structs, the request's
class is called ``Request...``; ``REQUEST`` is keyed by its schema name. The tables of fields are explained in
odradek/protocol/messages.py.

``tests/protocol/test_message_types.py`` fails if the checked-in files differ from this tool's output.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from odradek.protocol.api_keys import NEWEST_VERSION, ApiKey
from tools.group_records import group_record_modules
from tools.kafka_definitions import (
    Definitions,
    Field,
    Message,
    Versions,
    coordinator_records,
    kafka_definitions,
    share_state_records,
    transaction_value,
)
from tools.metadata_records import record_modules
from tools.named_tuples import literal, named_tuple, python_type

PROTOCOL = Path(__file__).resolve().parent.parent / "odradek/protocol"

# Fields that the newest version dropped, and that a handler or a response to an older version needs.
OLDER_FIELDS: dict[str, tuple[str, ...]] = {
    "MetadataRequest": ("include_cluster_authorized_operations",),
    "MetadataResponse": ("cluster_authorized_operations",),
    "TopicProduceResponse": ("name",),
    "FetchRequest": ("replica_id",),
    "FetchTopic": ("topic",),
    "ForgottenTopic": ("topic",),
    "FetchableTopicResponse": ("topic",),
    "OffsetCommitRequest": ("retention_time_ms",),
    "OffsetCommitRequestTopic": ("name",),
    "OffsetCommitResponseTopic": ("name",),
    "OffsetFetchRequestTopics": ("name",),
    "OffsetFetchResponseTopics": ("name",),
    "StreamsGroupHeartbeatResponse": ("acceptable_recovery_lag_legacy",),
    "TxnOffsetCommitRequestTopic": ("name",),
    "TxnOffsetCommitResponseTopic": ("name",),
    "UpdateFeaturesResponse": ("results",),
}
# Requests with handwritten classes, because their batches stay in the frame.
BY_HAND = {"ProduceRequest": "odradek.protocol.produce_request"}

_ZEROS = {"string": '""', "bytes": 'b""', "records": "None", "bool": "False", "uuid": "None", "float64": "0.0"}
_IMPORTS = {"Sequence": "collections.abc", "Sized": "collections.abc", "UUID": "uuid"}
_KINDS = ("request", "response")
# A tuple has methods of these names, which the fields hide.
_METHODS_OF_TUPLE = {"count", "index"}


def generate() -> dict[str, str]:
    """The files by their paths below odradek/protocol."""
    definitions = kafka_definitions()
    files = {f"message_types/{api_key.name.lower()}.py": _Module(api_key, definitions).source() for api_key in ApiKey}
    files["coordinator_records/tables.py"] = _coordinator_tables()
    files |= {f"coordinator_records/{name}": source for name, source in group_record_modules().items()}
    files |= {f"metadata_records/{name}": source for name, source in record_modules(_field_table).items()}
    files["message_types/__init__.py"] = (
        '"""The canonical messages, a module an API (odradek.protocol.messages). Written by tools/generate_messages.py."""\n'
    )
    return files


def _coordinator_tables() -> str:
    title = '"""The coordinators\' records, a group\'s by the version of the key. Written by tools/generate_messages.py."""'
    lines = [title, "", "from typing import Final"]
    # The keys of offsets and classic groups are read and written by hand. Kind 0 is an old key with the value of kind 1.
    for name, place, first in (("KEYS", 0, 3), ("VALUES", 1, 1)):
        lines += _tables_by_kind(name, {kind: both[place] for kind, both in coordinator_records().items() if kind >= first})
    for name, place in (("SHARE_STATE_KEYS", 0), ("SHARE_STATE_VALUES", 1)):
        lines += _tables_by_kind(name, {kind: both[place] for kind, both in share_state_records().items()})
    lines += ["", f'TRANSACTION_VALUE: Final = """\n{_field_table(transaction_value())}\n"""']
    return "\n".join([*lines, ""])


def _tables_by_kind(name: str, messages: dict[int, Message]) -> list[str]:
    tables = [f'    {kind}: """\n{_field_table(message)}\n""",' for kind, message in messages.items()]
    return ["", f"{name}: Final[dict[int, str]] = {{", *tables, "}"]


class _Module:
    """The module of one API while it is generated."""

    def __init__(self, api_key: ApiKey, definitions: Definitions) -> None:
        self._api_key = api_key
        self._newest = NEWEST_VERSION[api_key]
        self._messages: dict[str, Message] = {kind: definitions[api_key, kind].up_to(self._newest) for kind in _KINDS}
        # Classes in the order of their definition, by (kind, schema name).
        self._bodies: dict[tuple[str, str], str] = {}
        self._names: dict[tuple[str, str], str] = {}

    def source(self) -> str:
        structs = {kind: set(self._canonical_structs(message.fields)) for kind, message in self._messages.items()}
        for kind, message in self._messages.items():
            shared = structs["request"] & structs["response"] if kind == "request" else set()
            if message.name in BY_HAND:
                self._names[kind, message.name] = message.name
            else:
                self._define(kind, message.name, message.fields, shared)
        return self._assembled()

    def _canonical(self, owner: str, fields: tuple[Field, ...]) -> list[Field]:
        """The fields of the canonical class: the newest version's, then those kept from older ones."""
        older = OLDER_FIELDS.get(owner, ())
        # A struct that the newest version of the message lacks has an older newest version.
        version = max((field.versions.last for field in fields), default=self._newest)
        newest = [field for field in fields if version in field.versions]
        return newest + [field for field in fields if field.name in older and field not in newest]

    def _canonical_structs(self, fields: tuple[Field, ...]) -> Iterator[str]:
        for field in fields:
            if field.fields and self._newest in field.versions:
                yield field.type
                yield from self._canonical_structs(field.fields)

    def _define(self, kind: str, name: str, of: tuple[Field, ...], shared: set[str]) -> None:
        if (kind, name) in self._names:
            return
        canonical = self._canonical(name, of)
        for field in canonical:
            if field.fields:
                self._define(kind, field.type, field.fields, shared)
        self._names[kind, name] = f"Request{name}" if name in shared else name
        fields = [f"{field.name}: {self._declaration(kind, field)}" for field in canonical]
        told = f"{_camel(self._api_key)} {kind}"
        doc = f"The {told}." if name.lower() == told.replace(" ", "").lower() else f"A struct of the {told}."
        self._bodies[kind, name] = named_tuple(self._names[kind, name], name, doc, fields)

    def _declaration(self, kind: str, field: Field) -> str:
        """The type and default of a field."""
        python = self._names[kind, field.type] if field.fields else python_type(field.type)
        if field.is_array:
            # The zero id is read as None.
            python = f"Sequence[{python} | None]" if field.type == "uuid" else f"Sequence[{python}]"
        default = self._default(field, python)
        may_be_null = default == "None" or field.nullable is not None or (field.type == "uuid" and not field.is_array)
        declared = f"{python} | None = {default}" if may_be_null else f"{python} = {default}"
        return f"{declared}  # type: ignore[assignment]" if field.name in _METHODS_OF_TUPLE else declared

    def _default(self, field: Field, python: str) -> str:
        """A literal: the default in the newest version that has the field."""
        if field.default is not None:
            return literal(field.default)
        if field.is_array:
            return "()"
        if field.nullable is not None and field.versions.last in field.nullable:
            return "None"
        return f"{python}()" if field.fields else _ZEROS.get(field.type, "0")

    def _assembled(self) -> str:
        by_hand = {name: module for name, module in BY_HAND.items() if ("request", name) in self._names}
        body = "\n\n\n".join(self._bodies.values())
        imports = [f"from {module} import {', '.join(names)}" for module, names in _needed(body) if names]
        imports += ["from typing import Any, Final, NamedTuple"]
        imports = sorted(imports)
        if by_hand:
            imports += ["", *(f"from {module} import {name}" for name, module in by_hand.items())]
        if "return shown(" in body:
            imports += ["", "from odradek.protocol.messages import shown"]
        title = f'"""{_camel(self._api_key)} up to version {self._newest}. Written by tools/generate_messages.py."""'
        tables = [self._table(kind) for kind in _KINDS]
        fields = [f'{kind.upper()}_FIELDS: Final = """\n{_field_table(message)}\n"""' for kind, message in self._messages.items()]
        return "\n".join([title, "", *imports, "", "", body, "", "", *tables, "", *fields, ""])

    def _table(self, kind: str) -> str:
        rows = [f'    "{schema}": {name},' for (of, schema), name in self._names.items() if of == kind]
        return "\n".join([f"{kind.upper()}: Final[dict[str, type[Any]]] = {{", *rows, "}"])


def _field_table(message: Message) -> str:
    """A message's fields in every version, a line each (odradek.protocol.messages)."""
    heading = f"{message.name} {message.versions.told()}"
    if message.flexible is not None:
        heading += f" flexible {message.flexible.told(message.versions) or '0+'}"
    return "\n".join([heading, *_field_lines(message.fields, message.versions, " ")])


def _field_lines(fields: tuple[Field, ...], within: Versions, indent: str) -> Iterator[str]:
    for field in fields:
        line = f"{indent}{field.name} {'[]' * field.is_array}{field.type}"
        line += _after(" ", field.versions.told(within))
        if field.nullable is not None:
            line += " null" + _after(" ", field.nullable.told(within))
        if field.tag is not None:
            line += f" tag {field.tag}"
        yield line + _after(" = ", field.default)
        yield from _field_lines(field.fields, within, indent + " ")


def _after(before: str, text: str | None) -> str:
    return before + text if text else ""


def _needed(body: str) -> Iterator[tuple[str, list[str]]]:
    for module in dict.fromkeys(_IMPORTS.values()):
        yield module, [name for name, of in _IMPORTS.items() if of == module and re.search(rf"\b{name}\b", body)]


def _camel(api_key: ApiKey) -> str:
    return "".join(part.capitalize() for part in api_key.name.split("_"))


def main() -> None:
    """Write the files, and delete those of message_types that belong to no API."""
    files = generate()
    for path in PROTOCOL.glob("message_types/*.py"):
        if f"message_types/{path.name}" not in files:
            path.unlink()
    for name, source in files.items():
        (PROTOCOL / name).write_text(source, encoding="utf-8")


if __name__ == "__main__":
    main()
