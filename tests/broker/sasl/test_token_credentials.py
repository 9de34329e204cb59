"""What tokens are checked by is made of their HMACs, kept while they are there, and shown by nothing."""

import pytest

from odradek.broker.sasl.token_credentials import TokenCredentials
from odradek.protocol.metadata_records.security import DelegationTokenRecord
from odradek.protocol.scram import ScramMechanism, encode_base64, salted_password, server_key, stored_key


def token(token_id, owner="User:alice", expires_ms=7):
    times = {"issue_timestamp": 1, "max_timestamp": 9, "expiration_timestamp": expires_ms}
    return DelegationTokenRecord(owner=owner, requester="User:bob", renewers=(), token_id=token_id, **times)


class Bed:
    def __init__(self):
        self.tokens = {"one": token("one"), "two": token("two", "User:a:b")}
        self.asked = []
        self.credentials = TokenCredentials(lambda: self.tokens, self.hmac)

    def hmac(self, token_id):
        self.asked.append(token_id)
        return b"hmac of " + token_id.encode()


@pytest.fixture
def bed():
    return Bed()


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_the_password_is_the_hmac_in_base64(bed, mechanism):
    owner, expires_ms, credential = bed.credentials.find("one", mechanism)
    salted = salted_password(mechanism, encode_base64(b"hmac of one"), credential.salt, credential.iterations)
    assert (owner, expires_ms, credential.iterations) == ("alice", 7, 4096)
    assert (credential.stored_key, credential.server_key) == (stored_key(mechanism, salted), server_key(mechanism, salted))


def test_the_owner_is_a_name_without_its_type(bed):
    assert bed.credentials.find("two", ScramMechanism.SCRAM_SHA_256).owner == "a:b"


def test_a_credential_is_made_once_and_lives_as_long_as_its_token(bed):
    first = bed.credentials.find("one", ScramMechanism.SCRAM_SHA_256).credential
    bed.tokens["one"] = token("one", expires_ms=8)
    again = bed.credentials.find("one", ScramMechanism.SCRAM_SHA_256)
    assert (again.credential, again.expires_ms, bed.asked) == (first, 8, ["one"])
    removed = bed.tokens.pop("one")
    assert bed.credentials.find("one", ScramMechanism.SCRAM_SHA_256) is None
    assert bed.credentials.find("two", ScramMechanism.SCRAM_SHA_256) is not None
    bed.tokens["one"] = removed
    assert bed.credentials.find("one", ScramMechanism.SCRAM_SHA_256).credential.salt != first.salt


def test_a_credential_is_not_shown(bed):
    found = bed.credentials.find("one", ScramMechanism.SCRAM_SHA_256)
    for secret in (found.credential.salt, found.credential.stored_key, found.credential.server_key):
        assert repr(secret) not in repr(found)
