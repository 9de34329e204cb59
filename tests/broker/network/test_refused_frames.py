"""A frame that is too large for its API: what has come of it is enough to refuse it."""

import pytest

from tests.broker.network.test_connection import REFUSED_KEY, Setup, answered, connect_large, send

pytestmark = pytest.mark.interpreted


def test_a_frame_that_is_too_large_for_its_api_is_not_received(capsys):
    setup = Setup()
    connection, transport = connect_large(setup)
    body = REFUSED_KEY.to_bytes(2, "big") + bytes(64 * 1024)
    data = len(body).to_bytes(4, "big") + body
    room = connection.get_buffer(-1)
    count = len(room)
    room[:] = data[:count]
    connection.buffer_updated(count)
    assert count < len(data)
    assert transport.closed
    assert f"{len(body)} bytes are too many" in capsys.readouterr().err


async def test_what_came_before_a_frame_that_is_too_large_is_answered():
    setup = Setup()
    connection, transport = connect_large(setup)
    send(connection, b"waits--1")
    body = REFUSED_KEY.to_bytes(2, "big") + bytes(64 * 1024)
    room = connection.get_buffer(-1)
    room[:] = (len(body).to_bytes(4, "big") + body)[: len(room)]
    connection.buffer_updated(len(room))
    assert not transport.closed
    await answered(setup)
    assert transport.sent == b"waits--1"
    assert transport.closed
