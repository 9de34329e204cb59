"""Our compiled writers against kio's, byte for byte, over every API and version."""

import io
import random
from typing import Any

import pytest
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer

from odradek.protocol.api_keys import NEWEST_VERSION, ApiKey
from odradek.protocol.messages import make_class
from odradek.protocol.schemas import field_specs, load, plain
from odradek.protocol.varint import uvarint
from odradek.protocol.writers import compile_writer
from tests.protocol.random_messages import random_message

_EVERY_MESSAGE = [
    pytest.param(api_key, version, kind, id=f"{api_key.name}-v{version}-{kind}")
    for api_key in ApiKey
    for version in schema_name_map[api_key.name.lower()]
    for kind in ("request", "response")
]


def plain_message(message: Any) -> Any:
    """The message with our field names and plain values, as a handler would have made it in that version."""
    if message is None:
        return None
    values: dict[str, Any] = {}
    for spec in field_specs(type(message)):
        value = getattr(message, spec.wire_name)
        if value is None:
            values[spec.name] = -1 if spec.kafka_type == "datetime_i64" else None
        elif spec.entity is not None:
            values[spec.name] = [plain_message(item) for item in value] if spec.is_array else plain_message(value)
        else:
            values[spec.name] = plain(value)
    return make_class(type(message).__name__, values)()


@pytest.mark.parametrize(("api_key", "version", "kind"), _EVERY_MESSAGE)
def test_every_message_is_written_as_kio_writes_it(api_key: ApiKey, version: int, kind: str) -> None:
    entity = load(api_key, version, kind)
    ours = compile_writer(entity, {})
    kios = entity_writer(entity)
    rng = random.Random(f"{api_key}-{version}-{kind}")
    for _ in range(12):
        message = random_message(entity, rng)
        expected = io.BytesIO()
        kios(expected, message)
        chunks: list[bytes] = []
        ours(chunks.append, plain_message(message))
        assert b"".join(chunks) == expected.getvalue()
        read_back, size = entity_reader(entity)(expected.getvalue(), 0)
        assert size == len(expected.getvalue())
        assert type(read_back) is type(message)


def test_the_newest_versions_are_kios() -> None:
    assert {key.name.lower(): version for key, version in NEWEST_VERSION.items()} == {
        name: max(versions) for name, versions in schema_name_map.items() if name.upper() in ApiKey.__members__
    }


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, b"\x00"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02"), (2**31 - 1, b"\xff\xff\xff\xff\x07")],
)
def test_uvarint(value: int, encoded: bytes) -> None:
    assert uvarint(value) == encoded
