"""``connection_creation_rate`` of ip entities: a connection above the rate is left unread, and closed (KIP-612)."""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from odradek.broker.network.connection_registry import IpConnectionRates
from odradek.controller.metadata.client_quotas import CONNECTION_CREATION_RATE, IP, ClientQuotas, QuotaEntity, quota_record
from odradek.protocol.api_keys import ApiKey
from tests.broker.network.test_connection import Setup, send
from tests.broker.network.tls_pair import Pair, Plain
from tests.raw_client import RawClient

pytestmark = pytest.mark.interpreted
BURST_S = 10
MANY = 50


class Limited(Setup):
    """``per_second`` connections of each address, of which those of ten seconds may come at once, have come."""

    def __init__(self, per_second=1, **limits):
        super().__init__(**{"max_connections": 1_000, "max_connections_per_ip": 1_000} | limits)
        quotas = ClientQuotas()
        quotas.replay(quota_record(QuotaEntity.of({IP: None}), CONNECTION_CREATION_RATE, float(per_second)))
        self.registry.ip_quotas = quotas
        self.before = [self.connect() for _ in range(per_second * BURST_S)]

    def pass_time(self, ms):
        self.clock.advance(ms)
        self.timer.advance()


def test_a_connection_above_the_rate_is_left_unread_until_it_is_closed():
    setup = Limited()
    _, transport = setup.connect()
    assert not transport.reading
    setup.pass_time(999)
    assert not transport.closed
    setup.pass_time(1)
    assert transport.closed
    assert (setup.dispatcher.seen, transport.sent) == ([], b"")


def test_a_loop_that_reads_all_the_same_is_told_again_and_what_it_has_read_is_not_taken():
    setup = Limited()
    late, transport = setup.connect()
    # As uvloop does, behind ``connection_made``.
    transport.reading = True
    send(late, b"aaaaaaaa")
    assert (setup.dispatcher.seen, transport.sent, transport.reading) == ([], b"", False)


def test_it_does_not_count_as_a_connection():
    setup = Limited(max_connections_per_ip=11)
    late, _ = setup.connect()
    assert (len(setup.registry), setup.registry.accepted, setup.registry.refused) == (10, 10, 0)
    late.connection_lost(None)
    setup.pass_time(1000)
    assert len(setup.registry) == 10
    _, transport = setup.connect()
    assert transport.reading
    assert len(setup.registry) == 11


def test_other_addresses_are_not_held_up():
    _, transport = Limited().connect(("10.0.0.2", 5))
    assert transport.reading


def test_those_that_are_left_unread_are_no_more_than_the_connections_that_there_may_be():
    setup = Limited(max_connections=12)
    late = [setup.connect() for _ in range(4)]
    assert [transport.aborted for _, transport in late] == [False, False, True, True]
    # One that is lost makes room.
    late[0][0].connection_lost(None)
    assert [setup.connect()[1].aborted for _ in range(2)] == [False, True]


def test_a_stop_closes_those_that_are_left_unread():
    setup = Limited()
    _, transport = setup.connect()
    setup.registry.close_all()
    assert transport.closed


def test_no_handshake_is_made_with_one_that_is_left_unread(certificates, monkeypatch):
    monkeypatch.setattr(Plain, "is_left_unread", True)
    pair = Pair(certificates)
    assert not pair.socket.is_read
    pair.socket.is_read = True
    pair.shake_hands()
    assert (pair.socket.sent, pair.socket.is_read) == (b"", False)
    monkeypatch.setattr(Plain, "is_left_unread", False)
    assert Pair(certificates).socket.is_read


@pytest.fixture
def unlimited(broker) -> Iterator[RawClient]:
    """A connection from before the rate, which takes it back."""
    with RawClient(broker.host, broker.port) as client:
        yield client
        alter(client, None)


def alter(client, rate):
    ops = [{"key": CONNECTION_CREATION_RATE, "value": rate or 0.0, "remove": rate is None}]
    entries = [{"entity": [{"entity_type": IP, "entity_name": "127.0.0.1"}], "ops": ops}]
    (result,) = client.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries).entries
    assert result.error_code == 0


def test_a_client_above_its_rate_is_cut_off_without_an_answer(broker, unlimited):
    alter(unlimited, 1.0)
    served = 0
    with suppress(ConnectionError):
        while served < 200:
            with RawClient(broker.host, broker.port) as client:
                client.call(ApiKey.API_VERSIONS, 0)
            served += 1
    # So many at once, and a few more if the machine takes seconds for them.
    assert BURST_S <= served < 200
    alter(unlimited, None)
    with RawClient(broker.host, broker.port) as client:
        assert client.call(ApiKey.API_VERSIONS, 0).error_code == 0


def test_an_address_has_its_own_rate_however_it_is_written_and_others_have_the_default():
    quotas = ClientQuotas()
    rates = IpConnectionRates(quotas)
    for ip, rate in (("0:0:0:0:0:0:0:1", 1.0), ("10.0.0.1", 2.0)):
        quotas.replay(quota_record(QuotaEntity.of({IP: ip}), CONNECTION_CREATION_RATE, rate))
    assert [accepted(rates, ip) for ip in ("::1", "::ffff:10.0.0.1", "10.0.0.2")] == [BURST_S, 2 * BURST_S, MANY]
    quotas.replay(quota_record(QuotaEntity.of({IP: None}), CONNECTION_CREATION_RATE, 3.0))
    assert accepted(rates, "10.0.0.2") == 3 * BURST_S


def accepted(rates, ip):
    """How many connections of an address that come at once are not above its rate, of ``MANY``."""
    return sum(rates.excess_ms(ip, 0.0) == 0 for _ in range(MANY))
