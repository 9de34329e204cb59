"""A delegation token that one broker has had its controller make lets in at another; who may not ask is refused where it asks."""

from contextlib import ExitStack

import pytest

from benchmarks.ports import free_ports
from odradek.client.api import Api, LoginFailed
from odradek.client.blocking import BlockingClient
from odradek.client.login import Login
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from odradek.protocol.message_types.describe_delegation_token import DescribeDelegationTokenRequest
from odradek.protocol.message_types.expire_delegation_token import ExpireDelegationTokenRequest
from odradek.protocol.message_types.metadata import MetadataRequest
from odradek.protocol.message_types.renew_delegation_token import RenewDelegationTokenRequest
from odradek.protocol.texts import encode_base64
from tests.broker_process import BrokerProcess
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.controller.cluster.own_clusters import SETTINGS

pytestmark = pytest.mark.timeout(120)

CREATE, RENEW, EXPIRE, DESCRIBE = (Api(ApiKey[f"{verb}_DELEGATION_TOKEN"]) for verb in ("CREATE", "RENEW", "EXPIRE", "DESCRIBE"))
_MODULE = "org.apache.kafka.common.security"
_USERS = ("alice", "bob")


def settings_of(node_id, port, sasl_port, controller_port):
    users = " ".join(f'user_{name}="{name}-secret"' for name in _USERS)
    settings = SETTINGS | {
        "node.id": str(node_id),
        "offsets.topic.replication.factor": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CLIENTS://127.0.0.1:{sasl_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listener.name.clients.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.clients.plain.sasl.jaas.config": f"{_MODULE}.plain.PlainLoginModule required {users};",
        "listener.name.clients.scram-sha-256.sasl.jaas.config": f"{_MODULE}.scram.ScramLoginModule required;",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "delegation.token.secret.key": "a key",
    }
    if node_id == 1:
        settings["listeners"] += f",CONTROLLER://127.0.0.1:{controller_port}"
    else:
        settings["process.roles"] = "broker"
    return settings


class Cluster:
    """Ports by node id, and clients that are closed at the end."""

    def __init__(self, stack, plain_ports, sasl_ports):
        self._stack = stack
        self._plain_ports = plain_ports
        self._sasl_ports = sasl_ports

    def client(self, node_id, login=None):
        port = (self._plain_ports if login is None else self._sasl_ports)[node_id]
        client = BlockingClient("127.0.0.1", port, "test", 30.0, None, login)
        self._stack.callback(client.close)
        return client

    def user(self, node_id, name):
        return self.client(node_id, Login("PLAIN", name, f"{name}-secret"))

    def by_token(self, node_id, token):
        return self.client(node_id, Login("SCRAM-SHA-256", token.token_id, encode_base64(token.hmac), by_token=True))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    one, two, sasl_one, sasl_two, controller = free_ports(5)
    directory = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        for node_id, port, sasl_port in ((1, one, sasl_one), (2, two, sasl_two)):
            process = BrokerProcess(directory / str(node_id), settings=settings_of(node_id, port, sasl_port, controller))
            process.port = port
            stack.enter_context(process)
        with ExitStack() as clients:
            yield Cluster(clients, {1: one, 2: two}, {1: sasl_one, 2: sasl_two})


@pytest.mark.parametrize(("made_at", "used_at"), [(1, 2), (2, 1)])
def test_a_token_is_one_at_all_brokers_until_it_is_removed(cluster, made_at, used_at):
    alice = cluster.user(made_at, "alice")
    token = alice.call(CREATE, CreateDelegationTokenRequest(renewers=[CreatableRenewers("User", "bob")], max_lifetime_ms=-1))
    assert (token.error_code, token.principal_name) == (ErrorCode.NONE, "alice")
    bob = cluster.user(used_at, "bob")

    def known():
        return {each.token_id: each for each in bob.call(DESCRIBE, DescribeDelegationTokenRequest(owners=None)).tokens}

    until(lambda: token.token_id in known())
    assert cluster.by_token(used_at, token).call(Api(ApiKey.METADATA, 4, 12), MetadataRequest(topics=[])).brokers
    renewed = bob.call(RENEW, RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=60_000))
    assert renewed.error_code == ErrorCode.NONE
    until(lambda: known()[token.token_id].expiry_timestamp == renewed.expiry_timestamp_ms)
    removed = alice.call(EXPIRE, ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1))
    assert removed.error_code == ErrorCode.NONE
    until(lambda: token.token_id not in known())
    with pytest.raises(LoginFailed):
        cluster.by_token(used_at, token)


@pytest.mark.parametrize("node_id", [1, 2])
def test_a_broker_does_not_forward_what_may_not_be_asked(cluster, node_id):
    token = cluster.user(node_id, "alice").call(CREATE, CreateDelegationTokenRequest(max_lifetime_ms=-1))

    def let_in():
        try:
            return cluster.by_token(node_id, token)
        except LoginFailed:
            # The broker has not heard of the token yet.
            return None

    clients = [cluster.client(node_id)]
    until(lambda: clients.append(let_in()) or clients[-1] is not None)
    for client in (clients[0], clients[-1]):
        for api, request in (
            (CREATE, CreateDelegationTokenRequest(max_lifetime_ms=-1)),
            (RENEW, RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1)),
            (EXPIRE, ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1)),
            (DESCRIBE, DescribeDelegationTokenRequest(owners=None)),
        ):
            assert client.call(api, request).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
