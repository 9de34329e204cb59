"""As who a broker connects to others, by what its configs say."""

import pytest

from odradek.broker.cluster.peers import PeerConnections
from odradek.broker.security.sasl.peer_login import PeerLogin
from odradek.client.login import Login
from odradek.common.config.broker_config import InvalidConfig, load
from odradek.timing.clock import VirtualClock
from tests.cases import each_case

PLAIN_LINE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_LINE = "org.apache.kafka.common.security.scram.ScramLoginModule required"
BETWEEN, AT_CONTROLLERS = "sasl.mechanism.inter.broker.protocol", "sasl.mechanism.controller.protocol"
BY_BROKERS = "listener.name.brokers.plain.sasl.jaas.config"
BY_CONTROLLERS = "listener.name.controller.scram-sha-512.sasl.jaas.config"
SECRET = "brokers-secret"
CLOCK = VirtualClock(1_000)
CLUSTER = {
    "process.roles": "broker",
    "node.id": "3",
    "controller.quorum.voters": "1@127.0.0.1:1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,BROKERS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    BETWEEN: "PLAIN",
    AT_CONTROLLERS: "SCRAM-SHA-512",
    BY_BROKERS: f'{PLAIN_LINE} username="brokers" password="{SECRET}" user_brokers="{SECRET}";',
    BY_CONTROLLERS: f'{SCRAM_LINE} username="them" password="{SECRET}";',
}


def test_each_listener_has_its_own_mechanism_and_its_own_user():
    config = load(None, CLUSTER)
    PeerConnections(config, CLOCK, to_controllers=True)
    assert PeerLogin(config, "BROKERS", BETWEEN, CLOCK)() == Login("PLAIN", "brokers", SECRET)
    assert PeerLogin(config, "CONTROLLER", AT_CONTROLLERS, CLOCK)() == Login("SCRAM-SHA-512", "them", SECRET)


def test_lines_for_the_listeners_of_others_have_their_effect():
    assert load(None, CLUSTER).warnings == ()
    told = load(None, CLUSTER | {BY_BROKERS.replace("brokers", "nobody"): f"{PLAIN_LINE};"}).warnings
    assert ["there is no listener with this name" in each for each in told] == [True]


def test_a_line_that_is_altered_is_for_the_next_connection_unless_it_names_nobody():
    config = load(None, CLUSTER)
    login = PeerLogin(config, "BROKERS", BETWEEN, CLOCK)
    for told, user in (('username="b2" password="p"', "b2"), ('username="b3"', "b2"), ('username="b4" password="p"', "b4")):
        config.override({BY_BROKERS: f"{PLAIN_LINE} {told};"})
        assert login().user == user


def test_a_token_is_made_for_each_session_and_one_that_cannot_be_leaves_the_last():
    line = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    key = "listener.name.brokers.oauthbearer.sasl.jaas.config"
    config = load(None, CLUSTER | {BETWEEN: "OAUTHBEARER", key: f'{line} unsecuredLoginStringClaim_sub="brokers";'})
    clock = VirtualClock(1_000)
    login = PeerLogin(config, "BROKERS", BETWEEN, clock)
    first = login()
    assert first == login() == Login("OAUTHBEARER", "brokers", first.password)
    clock.advance(1_000)
    later = login()
    assert later.password != first.password
    config.override({key: f"{line};"})
    assert login() == later


@each_case(
    ("key", "value", "mentions"),
    [
        (BETWEEN, None, [BETWEEN, "GSSAPI", "there is no GSSAPI"]),
        (AT_CONTROLLERS, None, [AT_CONTROLLERS, "GSSAPI", "there is no GSSAPI"]),
        (BETWEEN, "OAUTHBEARER", ["listener.name.brokers.oauthbearer.sasl.jaas.config", "(not set)"]),
        (BETWEEN, "SCRAM-SHA-256", ["listener.name.brokers.scram-sha-256.sasl.jaas.config", "(not set)"]),
        ("sasl.enabled.mechanisms", "SCRAM-SHA-256", [BETWEEN, "among the sasl.enabled.mechanisms"]),
        (BY_CONTROLLERS, f"{SCRAM_LINE};", [BY_CONTROLLERS, "no username and password"]),
        (BY_BROKERS, f'{PLAIN_LINE} username="brokers" user_brokers="{SECRET}";', [BY_BROKERS, "no password"]),
        (BY_BROKERS, f'{SCRAM_LINE} username="brokers" password="{SECRET}";', [BY_BROKERS, PLAIN_LINE]),
    ],
)
def test_a_broker_that_could_not_log_in_is_refused(key, value, mentions):
    settings = {name: text for name, text in (CLUSTER | {key: value}).items() if text is not None}
    with pytest.raises(InvalidConfig) as refusal:
        PeerConnections(load(None, settings), CLOCK, to_controllers=True)
    told = str(refusal.value)
    assert [each for each in mentions if each not in told] == []
    assert SECRET not in told


def test_who_is_its_own_controller_logs_in_at_none():
    settings = CLUSTER | {AT_CONTROLLERS: "GSSAPI"}
    PeerConnections(load(None, settings), CLOCK, to_controllers=False)
