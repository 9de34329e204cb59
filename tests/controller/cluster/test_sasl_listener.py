"""The listener of a controller in a broker's process, where it wants SASL: who is let in, and what for."""

import subprocess
import sys
from contextlib import closing

import pytest

from benchmarks.ports import free_ports
from odradek.client.api import Api, ClientError, LoginFailed
from odradek.client.blocking import BlockingClient
from odradek.client.login import Login
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.create_delegation_token import CreateDelegationTokenRequest
from odradek.protocol.message_types.describe_cluster import DescribeClusterRequest
from odradek.protocol.message_types.expire_delegation_token import ExpireDelegationTokenRequest
from odradek.protocol.message_types.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.texts import encode_base64
from tests.broker_process import BrokerProcess, command_environment

DESCRIBE = Api(ApiKey.DESCRIBE_CLUSTER, 1)
CREATE = Api(ApiKey.CREATE_DELEGATION_TOKEN)
CONTROLLERS = DescribeClusterRequest(endpoint_type=2)
PLAIN, SCRAM = Login("PLAIN", "admin", "admin-secret"), Login("SCRAM-SHA-256", "carol", "carol-secret")
LINES = "listener.name.controller"
PACKAGE = "org.apache.kafka.common.security"


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """(broker, port of its controller); carol comes with the directory."""
    directory = tmp_path_factory.mktemp("controller") / "data"
    port, controller_port = free_ports(2)
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        f"{LINES}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        f"{LINES}.plain.sasl.jaas.config": f'{PACKAGE}.plain.PlainLoginModule required user_admin="admin-secret";',
        f"{LINES}.scram-sha-256.sasl.jaas.config": f"{PACKAGE}.scram.ScramLoginModule required;",
        "delegation.token.secret.key": "a key",
        "authorizer.class.name": "StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "odradek", "format", "--data-dir", str(directory), *words]
    user = ["--add-scram", "SCRAM-SHA-256=[name=carol,password=carol-secret]"]
    subprocess.run([*command, *user], check=True, capture_output=True, env=command_environment())
    broker = BrokerProcess(directory, settings=settings)
    broker.port = port
    with broker:
        yield broker, controller_port


def client(node, login):
    return closing(BlockingClient("127.0.0.1", node[1], "test", 10.0, None, login))


@pytest.mark.parametrize(("login", "code"), [(PLAIN, ErrorCode.NONE), (SCRAM, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)])
def test_who_is_let_in_may_what_that_user_may(node, login, code):
    with client(node, login) as asks:
        assert asks.call(DESCRIBE, CONTROLLERS).error_code == code


def test_who_does_not_log_in_is_told_nothing(node):
    with client(node, None) as asks, pytest.raises(ClientError):
        asks.call(DESCRIBE, CONTROLLERS)


@pytest.mark.parametrize("login", [PLAIN, SCRAM])
def test_a_wrong_password_is_refused_and_the_log_says_whose(node, login):
    before = len(node[0].stderr)
    with pytest.raises(LoginFailed) as refused:
        client(node, login._replace(password="another-secret"))
    assert refused.value.code == ErrorCode.SASL_AUTHENTICATION_FAILED
    [line] = [line for line in node[0].stderr[before:].splitlines() if f'"user": "{login.user}"' in line]
    assert '"listener": "CONTROLLER"' in line
    assert "the password is wrong" in line
    assert "another-secret" not in node[0].stderr


def test_a_token_that_was_asked_for_here_lets_its_owner_in_until_it_is_removed(node):
    with client(node, PLAIN) as admin:
        token = admin.call(CREATE, CreateDelegationTokenRequest(max_lifetime_ms=-1))
        login = Login("SCRAM-SHA-256", token.token_id, encode_base64(token.hmac), by_token=True)
        with client(node, login) as asks:
            assert asks.call(DESCRIBE, CONTROLLERS).error_code == ErrorCode.NONE
            # Who has shown a token is given no other.
            refused = asks.call(CREATE, CreateDelegationTokenRequest(max_lifetime_ms=-1))
            assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        with pytest.raises(LoginFailed):
            client(node, login._replace(password="another-secret"))
        admin.call(Api(ApiKey.EXPIRE_DELEGATION_TOKEN), ExpireDelegationTokenRequest(token.hmac, expiry_time_period_ms=-1))
        with pytest.raises(LoginFailed):
            client(node, login)


def test_a_client_that_is_in_is_refused_another_handshake(node):
    with client(node, PLAIN) as asks:
        answer = asks.call(Api(ApiKey.SASL_HANDSHAKE), SaslHandshakeRequest(mechanism="PLAIN"))
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
