"""``max.connection.creation.rate`` over time, and the rates of addresses."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.network.connection_registry import ConnectionRate, IpConnectionRates
from odradek.controller.metadata.client_quotas import CONNECTION_CREATION_RATE, IP, ClientQuotas, QuotaEntity, quota_record
from tests.cases import each_case

NO_LIMIT = 2**31 - 1
WINDOW_MS = 10_000


def test_without_a_limit_nobody_waits():
    rate = ConnectionRate()
    assert [rate.delay_ms(0.0, NO_LIMIT) for _ in range(10_000)] == [0.0] * 10_000


def test_after_a_silence_ten_seconds_worth_of_connections_may_come_at_once():
    rate = ConnectionRate()
    delays = [rate.delay_ms(50_000.0, 5) for _ in range(52)]
    assert delays == [0.0] * 50 + [200.0, 400.0]


def test_a_rate_of_0_lets_one_through_in_a_second_as_in_kafka():
    rate = ConnectionRate()
    assert [rate.delay_ms(50_000.0, 0) for _ in range(3)] == [1000.0, 2000.0, 3000.0]


def test_a_rate_that_is_raised_counts_from_the_next_connection_on():
    rate = ConnectionRate()
    for _ in range(20):
        rate.delay_ms(50_000.0, 1)
    assert rate.delay_ms(60_000.0, 1) == pytest.approx(1000.0)
    assert rate.delay_ms(60_000.0, 100) == pytest.approx(1010.0)


@given(per_second=st.integers(1, 50), gaps_ms=st.lists(st.floats(0, 3000), max_size=200))
def test_no_more_connections_have_their_turn_within_any_time_than_the_rate_and_one_window_allow(per_second, gaps_ms):
    rate, now_ms, turns_ms = ConnectionRate(), 1_000_000.0, []
    for gap_ms in gaps_ms:
        now_ms += gap_ms
        turns_ms.append(now_ms + rate.delay_ms(now_ms, per_second))
    for first, begin_ms in enumerate(turns_ms):
        for last in range(first, len(turns_ms)):
            allowed = per_second * (turns_ms[last] - begin_ms + WINDOW_MS) / 1000 + 1
            assert last - first + 1 <= allowed + 1e-6


class Addresses:
    """Quotas of ip entities, and connections from them."""

    def __init__(self, **quotas):
        self.quotas = ClientQuotas()
        self.rates = IpConnectionRates(self.quotas)
        for name, value in quotas.items():
            self.put(None if name == "default" else name, value)

    def put(self, name, value):
        entity = QuotaEntity.of({IP: name})
        self.quotas.replay(quota_record(entity, CONNECTION_CREATION_RATE, value))

    def come(self, count, ip, now_ms=1_000_000.0):
        """How many of so many connections are let in."""
        return sum(self.rates.excess_ms(ip, now_ms) == 0 for _ in range(count))


def test_without_quotas_every_address_may_connect():
    assert Addresses().come(10_000, "10.0.0.1") == 10_000


def test_each_address_has_a_rate_of_its_own_or_the_default_one():
    addresses = Addresses(**{"10.0.0.1": 2.0, "default": 1.0})
    assert [addresses.come(50, ip) for ip in ("10.0.0.1", "10.0.0.2", "10.0.0.3")] == [20, 10, 10]
    addresses.put("10.0.0.1", None)
    assert addresses.come(50, "10.0.0.1", 2_000_000.0) == 10


def test_what_is_above_the_rate_does_not_count_and_is_kept_until_the_rate_permits_it():
    addresses = Addresses(default=2.0)
    assert addresses.come(20, "10.0.0.1") == 20
    assert [addresses.rates.excess_ms("10.0.0.1", 1_000_000.0) for _ in range(3)] == [500.0] * 3
    assert (addresses.rates.throttled, addresses.rates.throttle_ms) == (3, 1500.0)
    assert addresses.come(3, "10.0.0.1", 1_000_500.0) == 1


def test_a_change_holds_from_the_next_connection_on():
    addresses = Addresses(default=1.0)
    assert addresses.come(20, "10.0.0.1") == 10
    addresses.put("10.0.0.1", 2.0**31 - 1)
    assert addresses.come(20, "10.0.0.1") == 20
    addresses.put("10.0.0.1", None)
    addresses.put(None, None)
    assert addresses.come(20, "10.0.0.1") == 20


@each_case(("name", "ip"), [("::1", "::1"), ("0:0:0:0:0:0:0:1", "::1"), ("[::1]", "::1"), ("10.0.0.1", "::ffff:10.0.0.1")])
def test_an_address_is_the_same_however_it_is_written(name, ip):
    assert Addresses(**{name: 1.0}).come(20, ip) == 10


async def test_an_address_may_be_told_by_a_host():
    addresses = Addresses(localhost=1.0)
    addresses.come(1, "10.0.0.1")
    deadline = asyncio.get_running_loop().time() + 10
    while addresses.come(20, "127.0.0.1") != 10:
        assert asyncio.get_running_loop().time() < deadline
        # A name server answers in its own time.
        await asyncio.sleep(0.01)


def test_addresses_that_have_been_silent_are_forgotten():
    addresses = Addresses(default=1.0)
    for number in range(5_000):
        addresses.come(1, f"10.0.{number // 250}.{number % 250}", 1_000_000.0 + 100 * number)
    assert len(addresses.rates._rates) <= 1_000
