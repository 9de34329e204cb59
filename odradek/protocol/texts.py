"""Bytes as text: base64, UUIDs in Kafka's form, and UTF-8."""

import binascii
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Final
from uuid import UUID

_UUID_TEXT_LENGTH: Final = 22


def encode_base64(data: bytes | memoryview) -> str:
    """Encode bytes as text for messages."""
    return b64encode(data).decode()


def decode_base64(text: str) -> bytes:
    """Decode text of ``encode_base64``. Raises ValueError."""
    try:
        return b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def uuid_text(value: UUID) -> str:
    """Return a UUID in Kafka's form: URL-safe base64 without padding, 22 characters."""
    return uuid_bytes_text(value.bytes)


def uuid_bytes_text(raw: bytes) -> str:
    """Return the bytes of a UUID in Kafka's form."""
    return urlsafe_b64encode(raw).decode().rstrip("=")


def new_uuid_text(new_uuid: Callable[[], UUID]) -> str:
    """Return the text of a new UUID. As in Kafka it begins with no dash, which Kafka's tools would take for an option."""
    text = uuid_text(new_uuid())
    while text.startswith("-"):
        text = uuid_text(new_uuid())
    return text


def parse_uuid(text: str) -> UUID:
    """Parse the text form that ``uuid_text`` returns. Raises ValueError."""
    if len(text) != _UUID_TEXT_LENGTH:
        raise ValueError(f"{text!r} is not a UUID in base64")
    return UUID(bytes=urlsafe_b64decode(text + "=="))


def utf8_or_none(data: bytes | None) -> str | None:
    """Return the text; None for null, and for bytes that are not UTF-8."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None
