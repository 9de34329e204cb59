"""Messages as JSON, and back: a struct is an object of its fields, bytes are base64, a UUID is Kafka's text of 22 characters.

The type of a field says how to read its value. Missing fields have their defaults; an unknown field is an error. Secrets are
left out.
"""

from __future__ import annotations

from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from odradek.protocol.hidden_fields import SECRETS
from odradek.testing.timeline.messages import Omitted

if TYPE_CHECKING:
    from collections.abc import Callable

__tracebackhide__ = True


def to_json(value: Any) -> Any:
    """Return a message as dictionaries, lists, texts, numbers, booleans and None."""
    if hasattr(value, "_fields"):
        secrets = SECRETS.get(type(value).__name__, ())
        return {name: to_json(inner) for name, inner in zip(value._fields, value, strict=True) if name not in secrets}
    if isinstance(value, tuple | list):
        return [to_json(inner) for inner in value]
    if isinstance(value, bytes | memoryview):
        return b64encode(value).decode()
    if isinstance(value, UUID):
        return uuid_text(value)
    return value


def from_json(message_class: type[Any], value: Any) -> Any:
    """Return a message of this class. Raises ValueError."""
    try:
        hint: Any = message_class
        return _reader(hint)(value)
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"not a valid {message_class.__name__}: {error}") from error


def uuid_text(value: UUID) -> str:
    """Return a UUID as Kafka writes it."""
    return urlsafe_b64encode(value.bytes).decode().rstrip("=")


@cache
def _reader(hint: Any) -> Callable[[Any], Any]:
    """Return the function that reads a value of this type from JSON."""
    if hasattr(hint, "_fields"):
        return _struct_reader(hint)
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _union_reader([each for each in get_args(hint) if each is not NoneType])
    if origin is not None:
        read_item = _reader(get_args(hint)[0])
        return lambda value: tuple(read_item(item) for item in value)
    if hint is UUID:
        return lambda value: UUID(bytes=urlsafe_b64decode(value + "=="))
    if hint in (int, str, bool, float):
        return lambda value: value
    # Records: bytes, or another sized type.
    return _read_bytes


def _struct_reader(struct: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(struct)
    readers = {name: _reader(hints[name]) for name in struct._fields}
    return lambda value: struct(**{name: readers[name](inner) for name, inner in value.items()})


def _union_reader(hints: list[Any]) -> Callable[[Any], Any]:
    read = _reader(bytes if Omitted in hints else hints[0])
    return lambda value: None if value is None else read(value)


def _read_bytes(value: Any) -> bytes | Omitted:
    return Omitted(**value) if isinstance(value, dict) else b64decode(value, validate=True)
