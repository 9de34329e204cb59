import hmac
from uuid import UUID

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.metadata_records.security import DelegationTokenRecord
from tests.broker.api.token_requests import ALICE, EXPIRY_MS, KEY, LIFETIME_MS, create, token_broker, token_of, tokens


@pytest.fixture
def broker():
    return token_broker()


def test_a_token_is_of_the_client_and_its_hmac_is_made_of_its_id_by_the_key(broker):
    now_ms = broker.clock.now_ms()
    made = token_of(broker)
    assert (made.principal_type, made.principal_name) == ("User", "alice")
    assert (made.token_requester_principal_type, made.token_requester_principal_name) == ("User", "alice")
    assert made.hmac == hmac.digest(KEY.encode(), made.token_id.encode(), "sha512")
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms) == (now_ms, now_ms + EXPIRY_MS)
    assert made.max_timestamp_ms == now_ms + LIFETIME_MS


def test_the_record_is_kafkas_and_has_no_hmac(broker):
    now_ms = broker.clock.now_ms()
    made = token_of(broker, renewers=["User:bob"], owner_principal_type="User", owner_principal_name="carol")
    record = DelegationTokenRecord(
        owner="User:carol",
        requester=ALICE,
        renewers=("User:bob",),
        issue_timestamp=now_ms,
        max_timestamp=now_ms + LIFETIME_MS,
        expiration_timestamp=now_ms + EXPIRY_MS,
        token_id=made.token_id,
    )
    assert tokens(broker) == {made.token_id: record}


@pytest.mark.parametrize(
    ("asked_ms", "expires_ms", "over_ms"),
    [
        (-1, EXPIRY_MS, LIFETIME_MS),
        (0, EXPIRY_MS, LIFETIME_MS),
        (1, 1, 1),
        (EXPIRY_MS + 1, EXPIRY_MS, EXPIRY_MS + 1),
        ((1 << 63) - 1, EXPIRY_MS, LIFETIME_MS),
    ],
)
def test_a_client_may_ask_for_a_shorter_life(broker, asked_ms, expires_ms, over_ms):
    made = token_of(broker, lifetime_ms=asked_ms)
    lives = made.expiry_timestamp_ms - made.issue_timestamp_ms, made.max_timestamp_ms - made.issue_timestamp_ms
    assert lives == (expires_ms, over_ms)


def test_times_do_not_go_beyond_what_can_be_said():
    most = (1 << 63) - 1
    broker = token_broker(delegation_token_max_lifetime_ms=str(most), delegation_token_expiry_time_ms=str(most))
    made = token_of(broker)
    assert (made.expiry_timestamp_ms, made.max_timestamp_ms) == (most, most)


def test_a_token_id_is_a_uuid_of_kafkas_that_is_no_option_of_a_command(broker):
    dashed, fine = UUID(bytes=b"\xf8" + bytes(15)), UUID(int=1)
    ids = iter([dashed, fine])
    broker.new_uuid = lambda: next(ids)
    assert token_of(broker).token_id == "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.mark.parametrize("renewers", [["Group:bob"], ["User:bob", "user:alice"]])
def test_only_users_renew(broker, renewers):
    refused = create(broker, renewers=renewers)
    assert (refused.error_code, refused.token_id, refused.issue_timestamp_ms) == (ErrorCode.INVALID_PRINCIPAL_TYPE, "", -1)
    assert tokens(broker) == {}


@pytest.mark.parametrize(
    ("client", "told"),
    [
        ({"listener": "PLAINTEXT"}, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"),
        ({"listener": "SSL", "principal": "User:ANONYMOUS"}, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"),
        ({"by_token": True}, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"),
        ({"listener": "SSL"}, "NONE"),
        ({"listener": "SASL_SSL"}, "NONE"),
        # By SASL somebody may have that name.
        ({"principal": "User:ANONYMOUS"}, "NONE"),
    ],
)
def test_who_has_not_authenticated_or_only_by_a_token_gets_none(broker, client, told):
    made = create(broker, **client)
    assert made.error_code == ErrorCode[told]
    assert bool(made.hmac) is (told == "NONE")


def test_there_are_no_tokens_without_a_key():
    broker = token_broker(delegation_token_secret_key="")
    refused = create(broker)
    assert (refused.error_code, refused.principal_name) == (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "alice")
    assert (refused.issue_timestamp_ms, refused.token_id, refused.hmac) == (0, "", b"")


def test_neither_the_key_nor_the_hmac_is_shown(broker):
    made = token_of(broker)
    assert repr(made.hmac) not in repr(made)
    assert KEY not in repr(broker.config)
