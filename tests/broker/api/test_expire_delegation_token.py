import pytest

from odradek.protocol.errors import ErrorCode
from tests.broker.api.token_requests import ALICE, BOB, CAROL, LIFETIME_MS, expire, token_broker, token_of, tokens


@pytest.fixture
def broker():
    return token_broker()


@pytest.mark.parametrize("principal", [ALICE, BOB])
def test_its_owner_and_its_renewers_remove_a_token(broker, principal):
    made, other = token_of(broker, renewers=[BOB]), token_of(broker)
    assert expire(broker, made.hmac, principal) == (ErrorCode.NONE, broker.clock.now_ms())
    assert set(tokens(broker)) == {other.token_id}
    assert expire(broker, made.hmac) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)


def test_others_do_not(broker):
    made = token_of(broker, renewers=[BOB])
    assert expire(broker, made.hmac, CAROL) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    assert set(tokens(broker)) == {made.token_id}


@pytest.mark.parametrize(("period_ms", "expires_ms"), [(0, 0), (7, 7), ((1 << 63) - 1, LIFETIME_MS)])
def test_a_token_expires_when_it_is_told_but_no_later_than_its_life_ends(broker, period_ms, expires_ms):
    made = token_of(broker)
    assert expire(broker, made.hmac, period_ms=period_ms) == (ErrorCode.NONE, made.issue_timestamp_ms + expires_ms)
    assert tokens(broker)[made.token_id].expiration_timestamp == made.issue_timestamp_ms + expires_ms


def test_a_token_that_is_over_can_be_removed_and_not_revived(broker):
    made = token_of(broker, lifetime_ms=1)
    broker.clock.advance(2)
    assert expire(broker, made.hmac, period_ms=1_000) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)
    assert expire(broker, made.hmac)[0] == ErrorCode.NONE


@pytest.mark.parametrize("client", [{"listener": "PLAINTEXT"}, {"by_token": True}])
def test_who_may_not_ask_is_told_so(broker, client):
    made = token_of(broker)
    assert expire(broker, made.hmac, **client) == (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)


def test_there_are_no_tokens_without_a_key():
    assert expire(token_broker(delegation_token_secret_key=""), b"") == (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, 0)


def test_expired_tokens_are_removed_by_the_check(broker):
    short, longer = token_of(broker, lifetime_ms=3_600_000), token_of(broker, lifetime_ms=3_600_001)
    broker.clock.advance(3_600_000)
    assert set(tokens(broker)) == {short.token_id, longer.token_id}
    broker.clock.advance(3_600_000)
    assert tokens(broker) == {}


def test_the_interval_of_the_check_is_the_configured_one():
    broker = token_broker(delegation_token_expiry_check_interval_ms="10")
    made = token_of(broker, lifetime_ms=15)
    broker.clock.advance(10)
    assert set(tokens(broker)) == {made.token_id}
    broker.clock.advance(10)
    assert tokens(broker) == {}


def test_without_a_key_nothing_is_removed():
    broker = token_broker(delegation_token_secret_key="")
    before = broker.controller.log_end_offset
    broker.clock.advance(10 * 3_600_000)
    assert broker.controller.log_end_offset == before
