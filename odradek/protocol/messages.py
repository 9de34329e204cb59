"""The canonical messages: one class for each API and struct, the same for all versions.

A canonical class has the fields of the newest version, and the few of older versions that the broker still honors. It is a
named tuple: a message is immutable, so one response may be sent to many clients. Every field has Kafka's default, so a handler
names only the fields it sets. Values are plain: ``int``, ``str``, ``bytes``, sequences, ``uuid.UUID | None`` (None is the zero
id), milliseconds for durations and times. Arrays of a decoded message are tuples.

The classes are in ``odradek.protocol.message_types``, a module for each API, where type checkers see them. A module is imported
with the handler that needs it. Code that works for any API (codecs, dispatch, tests) gets the classes by
``messages(ApiKey.METADATA)``.

The fields of a message in one of its versions: the source from which readers and writers are compiled.

A module of ``message_types`` has a table for the request and one for the response, as Kafka's definitions give them:

    FetchRequest 4-18 flexible 12+
     cluster_id string 12+ null 12+ tag 0 = null
     replica_id int32 -14 = -1
     topics []FetchTopic
      topic string -12
      topic_id uuid 13+

The first line has the name, the existing versions, and the versions with compact lengths and tagged fields (KIP-482). A field
has its name in the canonical class, its type, the versions that have it if not all do, and the versions in which it may be
null. Then come its tag, and its default as JSON if that is not zero or empty. The fields of a struct stand below it.
"""

import json
import re
from collections import namedtuple
from importlib import import_module
from typing import Any, Final, NamedTuple

from odradek.protocol.api_keys import ApiKey

_FIELD: Final = re.compile(
    r"( +)(\w+) (\[\])?(\w+)(?: ([\d+-]+))?(?: (null)(?: ([\d+-]+))?)?(?: tag (\d+))?(?: = (.+))?",
)
# Without ``topic_config_error_code`` (CreateTopics) and ``acknowledge_error_code`` (ShareFetch): Kafka counts no failure there.
_ERROR_CODES: Final = {"error_code", "partition_error_code"}
_ZEROS: Final[dict[str, object]] = {"string": "", "bytes": b"", "records": None, "bool": False, "uuid": None, "float64": 0.0}


# The default of a struct: a struct whose fields have their defaults.
OF_FIELDS: Final = object()


# The secrets in messages, by the name of the struct: tokens, HMACs, salts, salted passwords. They appear in no log line and no
# recording.
SECRETS: Final = {
    "SaslAuthenticateRequest": {"auth_bytes"},
    "SaslAuthenticateResponse": {"auth_bytes"},
    "ScramCredentialUpsertion": {"salt", "salted_password"},
    "CreateDelegationTokenResponse": {"hmac"},
    "RenewDelegationTokenRequest": {"hmac"},
    "ExpireDelegationTokenRequest": {"hmac"},
    "DescribedDelegationToken": {"hmac"},
    "UserScramCredentialRecord": {"salt", "stored_key", "server_key"},
}


class FieldSpec(NamedTuple):
    """One field of a struct in one version.

    ``name`` is the name in the canonical class. ``kafka_type`` is Kafka's name of a primitive type. For a struct it is None, and
    ``layout`` is the struct's. ``tag`` is None for an untagged field. ``default`` is in canonical form, or OF_FIELDS.
    """

    name: str
    kafka_type: str | None
    layout: "Layout | None"
    is_array: bool
    nullable: bool
    tag: int | None
    default: object

    @property
    def is_error_code(self) -> bool:
        """Return True for the outcome of a request, or of a part of it."""
        return self.name in _ERROR_CODES


class Layout:
    """A message or a struct in one version: its name in the schema, and its fields in wire order."""

    __slots__ = ("fields", "flexible", "name")

    def __init__(self, name: str, *, flexible: bool, fields: tuple[FieldSpec, ...]) -> None:
        self.name = name
        self.flexible = flexible
        self.fields = fields


def load(api_key: ApiKey, version: int, kind: str) -> Layout:
    """Return an API's ``kind`` ("request" or "response") in that version. Raises ValueError if there is none."""
    module = import_module(f"odradek.protocol.message_types.{api_key.name.lower()}")
    return layout_of(getattr(module, f"{kind.upper()}_FIELDS"), version)


def layout_of(table: str, version: int) -> Layout:
    """Return the message of a table in that version. Raises ValueError if there is none."""
    heading, *lines = table.strip("\n").splitlines()
    name, versions, *flexible = heading.split()
    if not _holds(versions, version):
        raise ValueError(f"{name} has versions {versions}, not {version}")
    return _layout(name, lines, 1, version, flexible=bool(flexible) and _holds(flexible[1], version))


def newest_version(table: str) -> int:
    """Return the newest version of a table's message."""
    return int(table.strip("\n").split(maxsplit=2)[1].rpartition("-")[2])


def _layout(name: str, lines: list[str], depth: int, version: int, *, flexible: bool) -> Layout:
    """Return the struct whose fields are the first of ``lines`` indented by ``depth``. Deeper ones belong to these fields."""
    fields = []
    for place, line in enumerate(lines, 1):
        found = _FIELD.fullmatch(line)
        if found is None:
            raise ValueError(f"not a field: {line}")
        indent, field, brackets, of, versions, null, null_versions, tag, default = found.groups()
        if len(indent) < depth:
            break
        if len(indent) > depth or not _holds(versions, version):
            continue
        layout = _layout(of, lines[place:], depth + 1, version, flexible=flexible) if of[0].isupper() else None
        is_array = brackets is not None
        nullable = null is not None and _holds(null_versions, version)
        fields.append(
            FieldSpec(
                name=field,
                kafka_type=None if layout else of,
                layout=layout,
                is_array=is_array,
                nullable=nullable,
                tag=None if tag is None else int(tag),
                default=json.loads(default) if default else _zero(of, is_array=is_array, nullable=nullable),
            )
        )
    return Layout(name, flexible=flexible, fields=tuple(fields))


def _holds(versions: str | None, version: int) -> bool:
    """Return True for a version within ``4-7``, ``-7`` (up to 7), ``4+``, ``4`` or None (all)."""
    if versions is None:
        return True
    if versions.endswith("+"):
        return version >= int(versions[:-1])
    first, dash, last = versions.partition("-")
    return int(first or 0) <= version <= int(last if dash else first)


def _zero(kafka_type: str, *, is_array: bool, nullable: bool) -> object:
    """Return the default of a field without a default in Kafka's definitions."""
    if is_array:
        return ()
    if kafka_type[0].isupper():
        return OF_FIELDS
    if nullable:
        return None
    return _ZEROS.get(kafka_type, 0)


class Messages:
    """The canonical classes of one API; ``request`` and ``response`` are the two messages.

    The classes are attributes under their schema names. If a request and a response use one name for two structs
    (DescribeQuorum's ``PartitionData``), the attribute is the response's; ``classes`` has both.
    """

    def __init__(self, api_key: ApiKey) -> None:
        module = import_module(f"odradek.protocol.message_types.{api_key.name.lower()}")
        self.classes: dict[str, dict[str, type[Any]]] = {"request": module.REQUEST, "response": module.RESPONSE}
        # A struct is defined after its inner structs, so the message itself is the last one.
        self.request: type[Any] = next(reversed(module.REQUEST.values()))
        self.response: type[Any] = next(reversed(module.RESPONSE.values()))

    def __getattr__(self, name: str) -> Any:
        """Return the class with that schema name. It is stored as a plain attribute for later accesses."""
        for classes in (self.classes["response"], self.classes["request"]):
            if name in classes:
                setattr(self, name, classes[name])
                return classes[name]
        raise AttributeError(f"no message class {name!r} here; classes: {self.classes}")


def make_class(name: str, defaults: dict[str, object]) -> type[Any]:
    """Make a named tuple with these defaults, for a struct without a canonical class."""
    return namedtuple(name, defaults, defaults=defaults.values())  # noqa: PYI024  made at run time


_messages: dict[ApiKey, Messages] = {}


def messages(api_key: ApiKey) -> Messages:
    """Return the canonical classes of an API."""
    known = _messages.get(api_key)
    if known is None:
        known = _messages[api_key] = Messages(api_key)
    return known


def shown(message: Any, *hidden: str) -> str:
    """Return the ``repr`` of a named tuple, without the values of the fields ``hidden``."""
    values = message._asdict().items()
    return f"{type(message).__name__}({', '.join(f'{n}=[hidden]' if n in hidden else f'{n}={value!r}' for n, value in values)})"
