"""The file of ``odradek serve --init``: YAML that is read, and checked against a schema, before the broker starts.

    topics:
      orders:
        partitions: 3
        configs: {retention.ms: 604800000}
        records:
          - {key: a, value: {total: 12}, headers: {source: web}}
          - {value: text, partition: 0}
      payments: 1
    users:
      alice: {password_file: alice.password, mechanisms: [SCRAM-SHA-256]}
    acls:
      - {allow: "User:alice", operations: [READ, WRITE], topic: orders}
    quotas:
      - {user: alice, producer_byte_rate: 1048576}
    group_offsets:
      billing:
        orders: {0: 5, 1: latest}

``initial_state`` puts it into the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import fastjsonschema
import yaml

from odradek.cli.acls import NAMED, OPERATIONS
from odradek.cli.quotas import KINDS
from odradek.cli.serve_options import InvalidInitFile
from odradek.protocol.scram import MAX_ITERATIONS, MECHANISMS, MIN_ITERATIONS

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from pathlib import Path

Json = dict[str, Any]

_SCALARS: Final = ["string", "number", "boolean"]
_COUNT: Final = {"type": "integer", "minimum": 1, "maximum": 100_000}
_INDEX: Final = {"type": "integer", "minimum": 0}
_TEXT: Final = {"type": "string"}
# Resources of an entry, by their key.
RESOURCES: Final = {option.removeprefix("--").replace("-", "_"): kind for kind, _, option, _ in NAMED}
QUOTA_ENTITIES: Final = tuple(kind.replace("-", "_") for kind in KINDS)
QUOTAS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)


def _object(properties: Json, required: tuple[str, ...] = ()) -> Json:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _by_name(schema: Json) -> Json:
    return {"type": "object", "additionalProperties": schema}


_RECORD: Final = _object(
    {
        "key": {},
        "value": {},
        "key_base64": _TEXT,
        "value_base64": _TEXT,
        "headers": _by_name({"type": ["string", "null"]}),
        "partition": _INDEX,
    }
)
_TOPIC: Final = {
    **_object(
        {
            "partitions": _COUNT,
            "configs": _by_name({"type": _SCALARS}),
            "records": {"type": "array", "items": _RECORD},
        }
    ),
    **_COUNT,
    "type": ["integer", "object", "null"],
}
_USER: Final = _object(
    {
        "password": {"type": "string", "minLength": 1},
        "password_file": _TEXT,
        "mechanisms": {"type": "array", "minItems": 1, "items": {"enum": list(MECHANISMS)}},
        "iterations": {"type": "integer", "minimum": MIN_ITERATIONS, "maximum": MAX_ITERATIONS},
    }
)
_ACL: Final = _object(
    {
        "allow": _TEXT,
        "deny": _TEXT,
        "host": _TEXT,
        "operations": {"type": "array", "minItems": 1, "items": {"enum": list(OPERATIONS[2:])}},
        **dict.fromkeys(RESOURCES, _TEXT),
        "cluster": {"enum": [True]},
    },
    ("operations",),
)
_QUOTA: Final = _object(
    {key: {"type": ["string", "null"]} for key in QUOTA_ENTITIES} | {key: {"type": "number", "minimum": 0} for key in QUOTAS}
)
_OFFSET: Final = {"type": ["integer", "string"], "minimum": 0, "pattern": "^(earliest|latest)$"}
SCHEMA: Final = _object(
    {
        "topics": _by_name(_TOPIC),
        "users": _by_name(_USER),
        "acls": {"type": "array", "items": _ACL},
        "quotas": {"type": "array", "items": _QUOTA},
        "group_offsets": _by_name(_by_name({**_by_name(_OFFSET), "propertyNames": {"pattern": "^[0-9]+$"}})),
    }
)


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """Reads keys as text, and times as text. A key that is given twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return the mapping of a node. See yaml."""
        # Merges (<<) of other mappings.
        self.flatten_mapping(node)
        found: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is None or key in found:
                reason = "a key must be text" if key is None else f"the key {key!r} is given twice"
                raise yaml.MarkedYAMLError(problem=reason, problem_mark=key_node.start_mark)
            found[key] = self.construct_object(value_node, deep=deep)
        return found


# JSON has no times.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in those if tag != "tag:yaml.org,2002:timestamp"]
    for first, those in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_init_file(path: Path) -> Json:
    """Read and check the file. Raises InvalidInitFile, OSError."""
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506  a SafeLoader
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInitFile(f"{path} is not the YAML of an init file: {error}") from error
    content: Json = {} if found is None else found
    try:
        fastjsonschema.compile(SCHEMA, use_default=False, use_formats=False)(content)
        _check_alternatives(content)
    except fastjsonschema.JsonSchemaValueException as error:
        key = str(error.name).removeprefix("data").removeprefix(".")
        raise InvalidInitFile(f"{path}: {key or 'the file'}: {_reason(error)}") from error
    except _NotOne as error:
        raise InvalidInitFile(f"{path}: {error}") from error
    return content


def _reason(error: fastjsonschema.JsonSchemaValueException) -> str:
    """Return the value, and what is allowed in its place."""
    rule, limit = error.rule, error.rule_definition
    if rule == "additionalProperties":
        allowed = error.definition["properties"]
        [unknown, *_] = [key for key in error.value if key not in allowed]
        return f"there is no {unknown!r}; allowed: {', '.join(allowed)}"
    if rule == "required":
        return f"{', '.join(key for key in limit if key not in error.value)} is missing"
    kinds = limit if isinstance(limit, list) else [limit]
    allowed_text = {
        "type": f"it must be of type {' or '.join(map(str, kinds))}",
        "enum": f"it must be one of {', '.join(str(kind) for kind in kinds)}",
        "minimum": f"it must be at least {limit}",
        "maximum": f"it must be at most {limit}",
        "minLength": "it must not be empty",
        "minItems": "it must not be empty",
        "propertyNames": "its keys must be the numbers of partitions",
        "pattern": "it must be an offset, earliest or latest",
    }
    return f"{error.value!r} is not allowed: {allowed_text[str(rule)]}"


class _NotOne(Exception):
    """A mapping has none of some keys, or two of them."""


def _check_alternatives(content: Json) -> None:
    """Check keys of which there must be one. Raises _NotOne."""
    for name, user in content.get("users", {}).items():
        _require_one(f"users.{name}", user, "password", "password_file")
    for number, acl in enumerate(content.get("acls", ())):
        _require_one(f"acls[{number}]", acl, "allow", "deny")
        _require_one(f"acls[{number}]", acl, *RESOURCES, "cluster")
    for number, quota in enumerate(content.get("quotas", ())):
        for keys in (QUOTA_ENTITIES, QUOTAS):
            if not any(key in quota for key in keys):
                raise _NotOne(f"quotas[{number}]: it must have one of {', '.join(keys)}")
    for name, topic in content.get("topics", {}).items():
        for number, record in enumerate(topic.get("records", ()) if isinstance(topic, dict) else ()):
            for field in ("key", "value"):
                if field in record and f"{field}_base64" in record:
                    raise _NotOne(f"topics.{name}.records[{number}]: it must have one of {field}, {field}_base64")


def _require_one(key: str, found: Mapping[str, object], *keys: str) -> None:
    given = [each for each in keys if each in found]
    if len(given) != 1:
        raise _NotOne(f"{key}: it must have one of {', '.join(keys)}, not {' and '.join(given) or 'none'}")
