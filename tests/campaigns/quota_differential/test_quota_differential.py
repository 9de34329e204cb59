"""The campaign's short form: quota managers decide as Kafka's, throttled clients get their quotas, and faults are found."""

import math

import pytest

from odradek.broker.network.connection import Connection
from odradek.broker.quotas import client_quota_manager
from odradek.broker.quotas.client_quota_manager import ClientQuotaManager, Samples
from odradek.broker.quotas.throttle_gate import FetchQuota
from odradek.testing import Broker
from tests.campaigns.planted import Faults
from tests.campaigns.quota_differential.brokers import BYTES_PER_S, Load, measure, problems
from tests.campaigns.quota_differential.core import differences, kafkas_answers, story

SEEDS = range(1, 121)
# Rates over two seconds, and not over eleven.
WINDOW_S = 2.0
SETTINGS = {"quota.window.num": "2"}

FAULTS = Faults()
FAULTS.put("samples-stay", Samples, "_forget", lambda self, now_ms: None)
FAULTS.put("window-fixed", Samples, "window_ms", lambda self, now_ms: self._count * self._sample_ms)
FAULTS.put("nothing-back", ClientQuotaManager, "take_back", lambda *_: None)
FAULTS.put("rounded-down", client_quota_manager, "rate_throttle_ms", lambda rate, limit, ms: int((rate - limit) * ms / limit))
FAULTS.put("one-second-at-once", ClientQuotaManager, "most_in_window", lambda self, *client: self.sensor(*client).limit)
FAULTS.put("never-in-debt", client_quota_manager.TokenBucket, "tokens", lambda self, limit, now_ms: self._burst_s * limit)
FAULTS.put("whole-seconds", client_quota_manager, "bucket_throttle_ms", lambda tokens, limit: math.ceil(-tokens / limit) * 1_000)
OF_BROKERS = Faults()
OF_BROKERS.put("never-muted", Connection, "mute", lambda *_: None)
OF_BROKERS.put("never-counted", FetchQuota, "throttle_ms", lambda *_: 0)

pytestmark = [pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    stories = [story(seed) for seed in SEEDS]
    return stories, kafkas_answers(stories, tmp_path_factory.mktemp("quotas"))


needs_kafka = [
    pytest.mark.xdist_group("kafka-tools"),
]


class TestManagers:
    pytestmark = needs_kafka

    def test_both_throttle_for_the_same_times(self, compared):
        stories, answers = compared
        throttled = [answer for each in answers for answer in each if answer.split()[0] not in {"0", "0.0"}]
        assert {told.kind for told in stories} == {"bytes", "request", "mutation"}
        assert any(answer.endswith("refused") for answer in throttled)
        assert differences(stories, answers) == []

    @pytest.mark.interpreted
    @pytest.mark.parametrize("fault", FAULTS)
    def test_a_planted_fault_is_found(self, fault, compared):
        with FAULTS.planted(fault):
            assert differences(*compared)


def seen(seconds):
    """By clients of a broker in this process. Changes of topics are in tests/broker/quotas: their times are long."""
    with Broker(configs=SETTINGS) as broker:
        return measure(broker.bootstrap_servers, seconds, WINDOW_S, left_out=("mutation",))


def test_throttled_clients_get_their_quotas_and_others_are_unharmed():
    loads = seen(seconds=2.0)
    assert loads.keys() == {"produce", "fetch", "request", "free"}
    # That throttle times are Kafka's is the managers' test.
    assert problems(loads, loads) == []


@pytest.mark.interpreted
@pytest.mark.parametrize(("fault", "harmed"), [("never-muted", "produce"), ("never-counted", "fetch")])
def test_a_fault_planted_in_the_broker_is_found(fault, harmed):
    with OF_BROKERS.planted(fault):
        loads = seen(seconds=0.5)
    assert [problem for problem in problems(loads, loads) if harmed in problem]


def load(per_s, throttle_ms, **others):
    return Load(per_s * 10.0, 1.0, 11.0, [throttle_ms], **others)


def test_the_checker_tells_what_differs_from_kafka():
    free = {"free": Load(100.0, 1.0, 11.0, answers=100)}
    kafkas = {"produce": load(BYTES_PER_S, 50)} | free
    assert problems({"produce": load(BYTES_PER_S * 1.04, 54)} | free, kafkas) == []
    assert len(problems({"produce": load(BYTES_PER_S * 1.06, 50)} | free, kafkas)) == 1
    assert len(problems({"produce": load(BYTES_PER_S, 56)} | free, kafkas)) == 1
    assert len(problems({"produce": load(BYTES_PER_S, 50, early=1)} | free, kafkas)) == 1
    assert len(problems({"produce": load(BYTES_PER_S, 50)} | {"free": Load(90.0, 1.0, 11.0, answers=100)}, kafkas)) == 1
    assert len(problems({"produce": load(BYTES_PER_S, 50)} | {"free": Load(100.0, 1.0, 11.0, [1], answers=100)}, kafkas)) == 1
