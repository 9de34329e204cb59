"""Responses whose times are plain milliseconds say what kio's own say, and besides that there is no time."""

from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from io import BytesIO
from random import Random

import pytest
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from odradek.cli.plain_times import with_plain_times
from odradek.cli.wire import SPOKEN
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schemas import load
from tests.protocol.random_messages import random_message

EPOCH = datetime.fromtimestamp(0, UTC)
MILLISECOND = timedelta(milliseconds=1)
SPOKEN_VERSIONS = [(api_key, version) for api_key, (first, last) in SPOKEN.items() for version in range(first, last + 1)]


def encoded(message):
    buffer = BytesIO()
    entity_writer(type(message))(buffer, message)
    return buffer.getvalue()


def values(message):
    """All that a message says, times as whole milliseconds, without names."""
    if is_dataclass(message):
        return [values(getattr(message, field.name)) for field in fields(message)]
    if isinstance(message, tuple):
        return [values(item) for item in message]
    if isinstance(message, timedelta):
        return message // MILLISECOND
    return (message - EPOCH) // MILLISECOND if isinstance(message, datetime) else message


@pytest.mark.parametrize(("api_key", "version"), SPOKEN_VERSIONS, ids=str)
def test_every_response_says_the_same_with_times_in_milliseconds(api_key, version):
    entity = load(api_key, version, "response")
    rng = Random(version)
    for _ in range(5):
        message = random_message(entity, rng)
        read, _ = entity_reader(with_plain_times(entity))(encoded(message), 0)
        assert values(read) == values(message)


def test_no_time_is_read_as_minus_one():
    entity = load(ApiKey.DESCRIBE_TRANSACTIONS, 0, "response")
    some_ms = 0x0102030405
    state = import_module(entity.__module__).TransactionState(
        error_code=ErrorCode.none,
        transactional_id="t",
        transaction_state="Empty",
        transaction_timeout=timedelta(0),
        transaction_start_time=EPOCH + some_ms * MILLISECOND,
        producer_id=1,
        producer_epoch=0,
        topics=(),
    )
    frame = encoded(entity(throttle_time=timedelta(0), transaction_states=(state,)))
    read, _ = entity_reader(with_plain_times(entity))(frame.replace(some_ms.to_bytes(8, "big"), b"\xff" * 8), 0)
    assert read.transaction_states[0].transaction_start_time_ms == -1
