"""The sensors of one kind of quota."""

import pytest

from odradek.broker.metadata.client_quotas import PRODUCER_BYTE_RATE, ClientQuotas, QuotaEntity, quota_record
from odradek.broker.quotas.client_quota_manager import IDLE_MS, ClientQuotaManager, QuotaWindow

BEGIN_MS = 1_000_000


@pytest.fixture
def quotas():
    return ClientQuotas()


@pytest.fixture
def manager(quotas):
    return ClientQuotaManager(PRODUCER_BYTE_RATE, quotas, QuotaWindow())


def put(quotas, value, **names):
    quotas.replay(
        quota_record(QuotaEntity.of({kind.replace("_", "-"): name for kind, name in names.items()}), PRODUCER_BYTE_RATE, value)
    )


def test_a_client_without_a_quota_is_not_counted(quotas, manager):
    put(quotas, 10, client_id="other")
    assert manager.record("u", "c", 1e9, BEGIN_MS) == 0
    assert list(manager.sensors(BEGIN_MS)) == []


def test_a_burst_within_ten_seconds_worth_is_let_through(quotas, manager):
    put(quotas, 1_000, client_id="c")
    assert manager.record("u", "c", 10_000, BEGIN_MS) == 0
    assert manager.record("u", "c", 1_000, BEGIN_MS) == 1_000


def test_the_throttle_time_is_what_brings_the_rate_down_to_the_quota(quotas, manager):
    put(quotas, 1_000, client_id="c")
    throttle_ms = manager.record("u", "c", 25_000, BEGIN_MS)
    assert throttle_ms == 15_000
    # The sample of 25,000 bytes is obsolete after eleven seconds.
    assert manager.record("u", "c", 1, BEGIN_MS + throttle_ms) == 0


def test_clients_of_one_user_share_its_sensor(quotas, manager):
    put(quotas, 1_000, user="u")
    manager.record("u", "one", 6_000, BEGIN_MS)
    assert manager.record("u", "two", 6_000, BEGIN_MS) == 2_000
    assert [owner for owner, _ in manager.sensors(BEGIN_MS)] == [("u", "")]


def test_each_client_has_a_sensor_of_its_own_by_a_default(quotas, manager):
    put(quotas, 1_000, client_id=None)
    manager.record("u", "one", 10_000, BEGIN_MS)
    assert manager.record("u", "two", 10_000, BEGIN_MS) == 0


def test_a_changed_quota_holds_for_what_was_taken_before(quotas, manager):
    put(quotas, 1_000, client_id="c")
    manager.record("u", "c", 10_000, BEGIN_MS)
    put(quotas, 500, client_id="c")
    assert manager.record("u", "c", 0, BEGIN_MS) == 10_000


def test_a_removed_quota_throttles_no_more(quotas, manager):
    put(quotas, 1_000, client_id="c")
    manager.record("u", "c", 100_000, BEGIN_MS)
    put(quotas, None, client_id="c")
    assert not manager.is_enabled
    assert manager.record("u", "c", 100_000, BEGIN_MS) == 0


def test_what_is_taken_back_was_never_taken(quotas, manager):
    put(quotas, 1_000, client_id="c")
    assert manager.record("u", "c", 20_000, BEGIN_MS) == 10_000
    manager.take_back("u", "c", 20_000, BEGIN_MS)
    assert manager.record("u", "c", 10_000, BEGIN_MS) == 0


def test_a_sensor_is_forgotten_after_an_idle_hour(quotas, manager):
    put(quotas, 1_000, client_id=None)
    manager.record("u", "old", 1, BEGIN_MS)
    manager.record("u", "new", 1, BEGIN_MS + IDLE_MS)
    assert [owner for owner, _ in manager.sensors(BEGIN_MS + IDLE_MS)] == [("", "old"), ("", "new")]
    assert [owner for owner, _ in manager.sensors(BEGIN_MS + IDLE_MS + 1)] == [("", "new")]


def test_new_clients_have_idle_sensors_forgotten(quotas, manager):
    put(quotas, 1_000, client_id=None)
    for number in range(100):
        manager.record("u", f"c{number}", 1, BEGIN_MS + number * IDLE_MS // 10)
    assert len(manager._sensors) <= 12


def test_throttle_times_that_are_not_over_are_counted(quotas, manager):
    put(quotas, 1_000, client_id="c")
    manager.note_throttled("u", "c", 300, BEGIN_MS)
    manager.note_throttled("u", "c", 100, BEGIN_MS)
    assert [manager.throttled_now(BEGIN_MS + passed_ms) for passed_ms in (0, 99, 100, 299, 300)] == [2, 2, 1, 1, 0]


def test_a_bound_of_throttle_times_holds(quotas):
    manager = ClientQuotaManager(PRODUCER_BYTE_RATE, quotas, QuotaWindow(), most_ms=1_000)
    put(quotas, 1, client_id="c")
    assert manager.record("u", "c", 1e6, BEGIN_MS) == 1_000


def test_there_are_only_so_many_sensors(quotas, manager):
    put(quotas, 1_000, client_id=None)
    for number in range(10_001):
        manager.record("u", f"c{number}", 1, BEGIN_MS + number)
    owners = [client_id for (_, client_id), _ in manager.sensors(BEGIN_MS + 20_000)]
    assert len(owners) == 7_501
    assert owners[0] == "c2500"
    assert owners[-1] == "c10000"
