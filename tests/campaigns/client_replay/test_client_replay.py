"""The short form: sessions replayed against another odradek and a cluster of them, and the faults that a replay finds."""

import pytest

from benchmarks.cluster.clusters import OdradekCluster
from tests.campaigns.client_replay.__main__ import against_odradek
from tests.campaigns.client_replay.clusters import replay_to
from tests.campaigns.client_replay.faulty import FAULTS, answers
from tests.campaigns.client_replay.sessions import SESSIONS, record


@pytest.mark.parametrize("client", SESSIONS)
def test_another_odradek_answers_a_recorded_session_the_same(client):
    timeline = record(SESSIONS[client])
    result = against_odradek(timeline)
    assert result.sent == len(timeline.exchanges) > 40
    assert [str(each) for each in result.differences] == []


@pytest.fixture(scope="module")
def recorded():
    return record(SESSIONS["aiokafka"])


@pytest.mark.interpreted
@pytest.mark.parametrize("fault", FAULTS)
def test_a_replay_finds_a_planted_fault(recorded, fault):
    assert FAULTS[fault].answer in answers(against_odradek(recorded, FAULTS[fault]))


@pytest.mark.timeout(180)
def test_three_brokers_answer_a_recorded_session_as_one_did(recorded):
    result = replay_to(OdradekCluster, recorded)
    assert result.sent == len(recorded.exchanges) > 40
    assert [str(each) for each in result.differences] == []


@pytest.mark.interpreted
@pytest.mark.timeout(180)
def test_a_replay_at_three_brokers_finds_all_planted_faults_and_nothing_else(recorded):
    assert answers(replay_to(OdradekCluster, recorded, *FAULTS.values())) == {fault.answer for fault in FAULTS.values()}
