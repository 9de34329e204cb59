"""The short form: sessions replayed against another odradek, and the faults that a replay finds."""

import pytest

from tests.campaigns.client_replay.__main__ import against_odradek
from tests.campaigns.client_replay.faulty import FAULTS
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


@pytest.mark.parametrize("fault", FAULTS)
def test_a_replay_finds_a_planted_fault(recorded, fault):
    api, path, _ = FAULTS[fault]
    found = against_odradek(recorded, fault).differences
    assert (api, path) in {(each.exchange.api, each.path) for each in found}
