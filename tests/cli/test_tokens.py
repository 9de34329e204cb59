"""``odradek tokens`` against a broker where alice and bob log in."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.broker_process import BrokerProcess

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_USERS = ("alice", "bob")


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    lines = " ".join(f'user_{name}="{name}-secret"' for name in _USERS)
    settings = {
        "listeners": "CLIENTS://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT",
        "listener.name.clients.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": f"{_PLAIN} {lines};",
        "delegation.token.secret.key": "a key",
    }
    with BrokerProcess(tmp_path_factory.mktemp("tokens") / "broker", settings=settings) as broker:
        yield broker


@pytest.fixture
def by(command, broker, tmp_path):
    """Run ``odradek tokens`` as a user: (exit status, stdout, stderr)."""

    def run(user, *arguments):
        file = tmp_path / f"{user}.properties"
        jaas = f'{_PLAIN} username="{user}" password="{user}-secret";'
        file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={jaas}\n")
        return command("tokens", *arguments, "--bootstrap-server", broker.address, "--command-config", file)

    return run


@pytest.fixture
def json_by(by):
    def run(user, *arguments):
        status, out, err = by(user, *arguments, "--json")
        assert status == 0, err
        return json.loads(out)

    return run


@pytest.fixture
def listed(json_by):
    """The tokens that a user may see, by id."""
    return lambda user, *owners: {
        row["token_id"]: row for row in json_by(user, "list", *(part for owner in owners for part in ("--owner", owner)))
    }


def days(row, field):
    return (datetime.fromisoformat(row[field]) - datetime.now(UTC)) / timedelta(days=1)


def test_a_token_that_is_created_is_listed_without_its_hmac_and_one_that_expires_is_not(json_by, by, listed):
    (made,) = json_by("alice", "create", "--renewer", "User:bob")
    row = listed("alice", "User:alice")[made["token_id"]]
    assert (row["owner"], row["requester"], row["renewers"]) == ("User:alice", "User:alice", ["User:bob"])
    assert (round(days(row, "expires")), round(days(row, "expires_at_last"))) == (1, 7)
    assert made["hmac"]
    assert made["hmac"] not in by("alice", "list")[1]
    json_by("alice", "expire", made["token_id"])
    assert made["token_id"] not in listed("alice")


def test_a_renewer_renews_a_token_and_a_stranger_does_not(json_by, by):
    (made,) = json_by("alice", "create", "--renewer", "User:bob", "--max-lifetime-ms", 9_000_000)
    (renewed,) = json_by("bob", "renew", made["token_id"], "--period-ms", 3_600_000)
    assert round(days(renewed, "expires") * 24) == 1
    (other,) = json_by("alice", "create")
    status, out, err = by("bob", "renew", other["token_id"])
    assert (status, out) == (1, "")
    assert "you are neither the token's owner nor a renewer (DELEGATION_TOKEN_OWNER_MISMATCH)" in err


def test_a_token_expires_later_when_it_is_told_so(json_by, listed):
    (made,) = json_by("alice", "create")
    json_by("alice", "expire", made["token_id"], "--in-ms", 7_200_000)
    assert round(days(listed("alice")[made["token_id"]], "expires") * 24) == 2


def test_a_token_may_be_of_somebody_else(json_by, listed):
    (made,) = json_by("alice", "create", "--owner", "User:carol")
    row = listed("bob", "User:carol")[made["token_id"]]
    assert (row["owner"], row["requester"]) == ("User:carol", "User:alice")
    assert listed("bob", "User:dave") == {}


def test_a_token_that_is_not_there_is_told(by):
    status, out, err = by("alice", "expire", "none")
    assert (status, out) == (1, "")
    assert "none: no such token, or you may not see it (DELEGATION_TOKEN_NOT_FOUND)" in err


@pytest.mark.parametrize(
    "arguments", [("create", "--renewer", "bob"), ("create", "--owner", ":bob"), ("list", "--owner", "User:")]
)
def test_a_principal_has_a_type_and_a_name(by, arguments):
    status, out, err = by("alice", *arguments)
    assert (status, out) == (2, "")
    assert "is not of the form User:alice" in err


def test_only_users_renew(by):
    status, _, err = by("alice", "create", "--renewer", "Group:bob")
    assert (status, "only users may renew a token (INVALID_PRINCIPAL_TYPE)" in err) == (1, True)
