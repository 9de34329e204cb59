"""What a test kit does to connections: refuse them, and have their answers go through something else."""

import pytest

from tests.broker.network.test_connection import FakeTransport, Setup, send

pytestmark = pytest.mark.interpreted


def test_a_connection_may_be_refused_by_who_is_asked():
    setup = Setup()
    setup.registry.refuses = lambda connection: connection.session.peer[0] == "10.0.0.2"
    _, refused = setup.connect(("10.0.0.2", 5))
    _, taken = setup.connect(("10.0.0.1", 5))
    assert refused.aborted
    assert not taken.aborted
    assert (len(setup.registry), setup.registry.refused) == (1, 1)


def test_answers_go_through_what_stands_before_the_transport():
    connection, transport = Setup().connect()
    other = FakeTransport()
    assert connection.write_through(lambda before: other if before is transport else before)
    send(connection, b"aaaaaaaa")
    assert (transport.sent, other.sent) == (b"", b"aaaaaaaa")
    connection.close()
    assert (transport.closed, other.closed) == (False, True)


def test_a_connection_that_is_lost_writes_through_nothing():
    connection, _ = Setup().connect()
    connection.connection_lost(None)
    assert not connection.write_through(lambda before: before)
