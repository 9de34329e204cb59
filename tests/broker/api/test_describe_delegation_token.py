import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_delegation_token import DescribedDelegationTokenRenewer, DescribeDelegationTokenOwner
from tests.broker.api.token_requests import BOB, ask, token_broker, token_of


@pytest.fixture
def broker():
    return token_broker()


def describe(broker, *owners, **more):
    people = [DescribeDelegationTokenOwner(*name.split(":")) for name in owners]
    return ask(broker, ApiKey.DESCRIBE_DELEGATION_TOKEN, **{"owners": people} | more)


def test_a_token_is_described_with_its_hmac(broker):
    made = token_of(broker, renewers=[BOB], owner_principal_type="User", owner_principal_name="carol")
    (token,) = describe(broker, owners=None).tokens
    assert (token.principal_type, token.principal_name) == ("User", "carol")
    assert (token.token_requester_principal_type, token.token_requester_principal_name) == ("User", "alice")
    assert (token.token_id, token.hmac) == (made.token_id, made.hmac)
    assert token.renewers == [DescribedDelegationTokenRenewer("User", "bob")]
    times = token.issue_timestamp, token.expiry_timestamp, token.max_timestamp
    assert times == (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms)
    assert repr(made.hmac) not in repr(token)


def test_tokens_are_found_by_owner_requester_and_renewer(broker):
    own = token_of(broker).token_id
    of_carol = token_of(broker, owner_principal_type="User", owner_principal_name="carol").token_id
    of_bob = token_of(broker, principal=BOB, renewers=["User:dave"]).token_id
    found = {
        name: [token.token_id for token in describe(broker, *name.split()).tokens]
        for name in ("User:alice", "User:carol", "User:bob", "User:dave", "Group:alice", "User:carol User:bob")
    }
    assert found == {
        "User:alice": [own, of_carol],
        "User:carol": [of_carol],
        "User:bob": [of_bob],
        "User:dave": [of_bob],
        "Group:alice": [],
        "User:carol User:bob": [of_carol, of_bob],
    }


def test_of_no_owner_there_are_no_tokens(broker):
    token_of(broker)
    assert describe(broker).tokens == []


@pytest.mark.parametrize("client", [{"listener": "PLAINTEXT"}, {"by_token": True}])
def test_who_may_not_ask_is_told_so(broker, client):
    token_of(broker)
    answer = describe(broker, owners=None, **client)
    assert (answer.error_code, list(answer.tokens)) == (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, [])


def test_there_are_no_tokens_without_a_key():
    answer = describe(token_broker(delegation_token_secret_key=""), owners=None)
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
