import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.alter_user_scram_credentials import ScramCredentialDeletion, ScramCredentialUpsertion
from odradek.protocol.scram import ScramMechanism, salted_password, stored_key
from tests.broker.api.bed import ask

SHA_256, SHA_512 = ScramMechanism
SALTED = salted_password(SHA_256, "a secret", b"salt", 4096)


def upsertion(name="alice", mechanism=SHA_256, iterations=4096):
    return ScramCredentialUpsertion(name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=SALTED)


def deletion(name="alice", mechanism=SHA_256):
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(broker, *alterations):
    answer = ask(
        broker,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        deletions=[each for each in alterations if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in alterations if isinstance(each, ScramCredentialUpsertion)],
    )
    return {result.user: (result.error_code, result.error_message) for result in answer.results}


def known(broker):
    return {(each.name, each.mechanism): each.iterations for each in broker.controller.image.kept.scram_credentials()}


def test_what_is_stored_is_what_checks_a_client_and_not_what_a_client_needs(core):
    assert alter(core, upsertion()) == {"alice": (0, None)}
    record = core.controller.image.kept.scram_credential("alice", SHA_256)
    assert (record.salt, record.stored_key, record.iterations) == (b"salt", stored_key(SHA_256, SALTED), 4096)
    assert SALTED not in (record.stored_key, record.server_key)


def test_a_credential_is_of_one_mechanism(core):
    alter(core, upsertion())
    alter(core, upsertion(mechanism=SHA_512, iterations=8192))
    assert known(core) == {("alice", SHA_256): 4096, ("alice", SHA_512): 8192}
    assert alter(core, deletion()) == {"alice": (0, None)}
    assert known(core) == {("alice", SHA_512): 8192}


def test_a_credential_replaces_the_one_before(core):
    alter(core, upsertion())
    alter(core, upsertion(iterations=5000))
    assert known(core) == {("alice", SHA_256): 5000}


@pytest.mark.parametrize(
    ("alteration", "code", "message"),
    [
        (upsertion(iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion(iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (upsertion(name=""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (deletion(name=""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion(mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (deletion(mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (deletion(), ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"),
    ],
)
def test_what_may_not_be_is_refused_and_others_are_not(core, alteration, code, message):
    assert alter(core, alteration, upsertion("bob")) == {alteration.name: (code, message), "bob": (0, None)}
    assert list(known(core)) == [("bob", SHA_256)]


def test_an_empty_salted_password_is_refused(core):
    code, _ = alter(core, upsertion()._replace(salted_password=b""))["alice"]
    assert code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert known(core) == {}


@pytest.mark.parametrize("iterations", [4096, 16384])
def test_the_limits_themselves_may_be(core, iterations):
    assert alter(core, upsertion(iterations=iterations)) == {"alice": (0, None)}


@pytest.mark.parametrize(
    "alterations",
    [
        (upsertion(), upsertion(mechanism=SHA_512)),
        (deletion(), deletion()),
        (deletion(), upsertion(mechanism=SHA_512)),
        (deletion(), deletion(), upsertion()),
    ],
)
def test_a_user_is_altered_once_in_a_request(core, alterations):
    alter(core, upsertion())
    refusal = ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
    assert alter(core, *alterations) == {"alice": refusal}
    assert known(core) == {("alice", SHA_256): 4096}


def test_a_snapshot_carries_credentials_on(core):
    alter(core, upsertion())
    _broker, credential = core.controller.image.kept.records()
    assert credential.name == "alice"


def test_secrets_are_not_shown():
    assert "salted_password=[hidden]" in repr(upsertion())
    assert repr(SALTED) not in repr(upsertion())
