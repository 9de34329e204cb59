import pytest

from odradek.protocol.errors import ErrorCode
from tests.broker.api.token_requests import (
    ALICE,
    BOB,
    CAROL,
    EXPIRY_MS,
    LIFETIME_MS,
    create,
    renew,
    token_broker,
    token_of,
    tokens,
)


@pytest.fixture
def broker():
    return token_broker()


@pytest.mark.parametrize("principal", [ALICE, BOB])
def test_its_owner_and_its_renewers_renew_a_token(broker, principal):
    made = token_of(broker, renewers=[BOB])
    before = tokens(broker)[made.token_id]
    broker.clock.advance(1_000)
    expires_ms = made.expiry_timestamp_ms + 1_000
    assert renew(broker, made.hmac, principal) == (ErrorCode.NONE, expires_ms)
    after = tokens(broker)[made.token_id]
    assert after.expiration_timestamp == expires_ms
    assert (after.owner, after.renewers, after.max_timestamp) == (before.owner, before.renewers, before.max_timestamp)


@pytest.mark.parametrize("requester", [BOB, CAROL])
def test_others_do_not_even_who_has_asked_for_it(broker, requester):
    made = token_of(broker, principal=BOB, owner_principal_type="User", owner_principal_name="alice")
    assert renew(broker, made.hmac, requester) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    assert renew(broker, made.hmac, ALICE)[0] == ErrorCode.NONE


@pytest.mark.parametrize(
    ("period_ms", "expires_ms"), [(1, 1), (EXPIRY_MS, EXPIRY_MS), (EXPIRY_MS + 1, EXPIRY_MS), (0, EXPIRY_MS), (-1, EXPIRY_MS)]
)
def test_a_client_may_ask_for_less(broker, period_ms, expires_ms):
    made = token_of(broker)
    assert renew(broker, made.hmac, period_ms=period_ms) == (ErrorCode.NONE, made.issue_timestamp_ms + expires_ms)


def test_no_token_is_renewed_beyond_its_life(broker):
    made = token_of(broker, lifetime_ms=EXPIRY_MS + 5)
    broker.clock.advance(EXPIRY_MS)
    assert renew(broker, made.hmac) == (ErrorCode.NONE, made.max_timestamp_ms)


def test_a_token_is_valid_in_its_last_millisecond_and_over_in_the_next(broker):
    made = token_of(broker, lifetime_ms=10)
    broker.clock.advance(10)
    assert renew(broker, made.hmac)[0] == ErrorCode.NONE
    broker.clock.advance(1)
    assert renew(broker, made.hmac, CAROL) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)


@pytest.mark.parametrize("shown", [b"", bytes(64)])
def test_an_hmac_of_no_token_is_told(broker, shown):
    token_of(broker)
    assert renew(broker, shown) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)


@pytest.mark.parametrize("client", [{"listener": "PLAINTEXT"}, {"by_token": True}])
def test_who_may_not_ask_is_told_so(broker, client):
    made = token_of(broker)
    assert renew(broker, made.hmac, **client) == (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)


def test_there_are_no_tokens_without_a_key():
    assert renew(token_broker(delegation_token_secret_key=""), b"") == (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, 0)


def test_a_token_is_found_among_others_that_come_and_go(broker):
    made = [create(broker, lifetime_ms=lifetime_ms) for lifetime_ms in (LIFETIME_MS, 1, LIFETIME_MS)]
    assert [renew(broker, each.hmac)[0] for each in made] == [ErrorCode.NONE] * 3
    broker.clock.advance(3_600_000)
    assert made[1].token_id not in tokens(broker)
    made.append(create(broker))
    assert [renew(broker, each.hmac)[0] for each in made] == [
        ErrorCode.NONE,
        ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]
