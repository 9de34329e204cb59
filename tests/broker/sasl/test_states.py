import pytest

from odradek.broker.sasl.states import EXPECTED, TRANSITIONS, IllegalTransition, SaslState, step
from odradek.protocol.api_keys import ApiKey
from tests.cases import each_case


def test_every_state_is_in_the_table():
    assert TRANSITIONS.keys() == set(SaslState)
    assert EXPECTED.keys() == set(SaslState) - {SaslState.COMPLETE}


def test_before_a_session_there_are_three_apis_and_no_other():
    assert frozenset().union(*EXPECTED.values()) == {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


def test_a_failure_is_the_end():
    assert not TRANSITIONS[SaslState.FAILED]


def test_every_state_can_be_reached():
    reached = {SaslState.INITIAL_REQUEST}
    while (further := reached.union(*(TRANSITIONS[state] for state in reached))) != reached:
        reached = further
    assert reached == set(SaslState)


@each_case("state", SaslState)
def test_a_session_follows_tokens_and_nothing_else(state):
    if state is SaslState.AUTHENTICATE:
        assert step(state, SaslState.COMPLETE) is SaslState.COMPLETE
    else:
        with pytest.raises(IllegalTransition):
            step(state, SaslState.COMPLETE)
