"""Our compiled writers against kio's, byte for byte, over every API and version."""

import random

from kio.serial import entity_reader

from odradek.protocol.api_keys import NEWEST_VERSION, ApiKey
from odradek.protocol.messages import load, make_class
from odradek.protocol.varint import uvarint
from odradek.protocol.writers import compile_writer
from tests import kio_schemas
from tests.cases import case, each_case
from tests.protocol.kio_messages import assert_written, encoded, every_api, known_versions, rebuilt
from tests.protocol.random_messages import random_message


@every_api
def test_every_message_is_written_as_kio_writes_it(api_key: ApiKey) -> None:
    for kind in ("request", "response"):
        for version in known_versions(api_key, kind):
            entity = kio_schemas.load(api_key, version, kind)
            ours = compile_writer(load(api_key, version, kind), {})
            rng = random.Random(f"{api_key}-{version}-{kind}")
            with case(f"{kind} v{version}"):
                for _ in range(12):
                    message = random_message(entity, rng)
                    expected = encoded(message)
                    chunks: list[bytes] = []
                    ours(chunks.append, rebuilt(message, lambda name, fields: make_class(name, fields)()))
                    assert_written(entity, b"".join(chunks), expected)
                    read_back, size = entity_reader(entity)(expected, 0)
                    assert size == len(expected)
                    assert type(read_back) is entity


def test_the_newest_versions_are_kios() -> None:
    assert {key: max(kio_schemas.versions(key)) for key in ApiKey} == NEWEST_VERSION


@each_case(
    ("value", "expected"),
    [(0, b"\x00"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02"), (2**31 - 1, b"\xff\xff\xff\xff\x07")],
)
def test_uvarint(value: int, expected: bytes) -> None:
    assert uvarint(value) == expected
