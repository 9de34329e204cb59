"""Who is told of which delegation tokens, and who may have them for others (KIP-373)."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.create_delegation_token import CreatableRenewers
from tests.broker.security.acl.bed import ALICE, Secured, told_lines

BOB = "User:bob"


@pytest.fixture
def secured():
    return Secured()


def create(secured, principal, *, renewers=(), **fields):
    people = [CreatableRenewers("User", name) for name in renewers]
    return secured.ask(ApiKey.CREATE_DELEGATION_TOKEN, principal=principal, renewers=people, max_lifetime_ms=-1, **fields)


def seen(secured, principal=ALICE):
    return {token.token_id for token in secured.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, principal=principal, owners=None).tokens}


def test_a_token_for_oneself_needs_no_right(secured):
    assert create(secured, ALICE).error_code == ErrorCode.NONE
    named = {"owner_principal_type": "User", "owner_principal_name": "alice"}
    assert create(secured, ALICE, **named).error_code == ErrorCode.NONE


def test_who_may_not_have_a_token_of_another_is_told_of_no_token(secured):
    refused = create(secured, ALICE, owner_principal_type="User", owner_principal_name="bob")
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (refused.principal_name, refused.token_requester_principal_name) == ("bob", "alice")
    assert (refused.token_id, refused.hmac, refused.max_timestamp_ms) == ("", b"", -1)
    assert seen(secured, "User:ANONYMOUS") == set()


def test_owners_requesters_and_renewers_are_told_of_their_tokens(secured):
    own = create(secured, ALICE).token_id
    renewed = create(secured, BOB, renewers=["alice"]).token_id
    secured.allow("CREATE_TOKENS USER User:carol")
    for_carol = create(secured, ALICE, owner_principal_type="User", owner_principal_name="carol").token_id
    create(secured, BOB)
    assert seen(secured) == {own, renewed, for_carol}


@pytest.mark.parametrize("right", ["DESCRIBE DELEGATION_TOKEN {}", "DESCRIBE_TOKENS USER User:bob"])
def test_others_are_told_of_a_token_that_they_may_describe(secured, right):
    of_bob = create(secured, BOB).token_id
    of_carol = create(secured, "User:carol").token_id
    with told_lines() as lines:
        assert seen(secured) == set()
    assert lines == []
    secured.allow(right.format(of_bob))
    assert seen(secured) == {of_bob}
    assert seen(secured, "User:ANONYMOUS") == {of_bob, of_carol}
