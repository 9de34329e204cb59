import pytest

from odradek.broker.security.sasl.listeners import JaasError, SaslListener, SaslServices, parse_jaas
from odradek.common.config import BrokerConfig
from odradek.common.config.definitions import InvalidConfig
from odradek.common.config.listener_config import SaslConfig, is_sasl_key
from odradek.timing.background import InlineBackground
from odradek.timing.clock import VirtualClock
from tests.cases import each_case

PLAIN_LINE = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret";'
SCRAM_LINE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
PLAIN_KEY = "listener.name.clients.plain.sasl.jaas.config"
SERVICES = SaslServices(lambda _user, _mechanism: None, lambda: "nonce", VirtualClock(), InlineBackground())
PLAIN_ONLY = {"sasl.enabled.mechanisms": "PLAIN", PLAIN_KEY: PLAIN_LINE}


def listener(**texts):
    return SaslListener(SaslConfig("CLIENTS", texts), SERVICES)


def test_a_listener_has_its_own_mechanisms():
    texts = PLAIN_ONLY | {
        "sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.clients.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.clients.scram-sha-512.sasl.jaas.config": SCRAM_LINE,
    }
    assert list(listener(**texts).mechanisms) == ["PLAIN", "SCRAM-SHA-512"]


def test_a_mechanism_has_its_own_configs_then_those_of_the_listener_then_the_brokers():
    key = "connections.max.reauth.ms"
    texts = dict(PLAIN_ONLY)
    found = []
    for each in (None, key, f"listener.name.clients.{key}", f"listener.name.clients.plain.{key}"):
        if each is not None:
            texts[each] = str(len(texts))
        found.append(listener(**texts).mechanisms["PLAIN"].max_reauth_ms)
    assert found == [0, 2, 3, 4]


def test_the_defaults_are_kafkas():
    mine = listener(**PLAIN_ONLY)
    assert (mine.failed_delay_ms, mine.max_receive_bytes) == (100, 524_288)


@each_case(
    ("texts", "complaint"),
    [
        ({}, r"GSSAPI for configuration .*sasl.enabled.mechanisms: must be a list of PLAIN, .*: there is no GSSAPI"),
        ({"sasl.enabled.mechanisms": "PLAIN,DIGEST-MD5"}, "PLAIN,DIGEST-MD5 for configuration sasl.enabled.mechanisms"),
        ({"sasl.enabled.mechanisms": ""}, r"\(not set\) for configuration sasl.enabled.mechanisms"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, rf"\(not set\) for configuration {PLAIN_KEY}: must be a JAAS line: org.*PlainLo"),
        # As in Kafka, neither all mechanisms nor all listeners share a line.
        ({"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": PLAIN_LINE}, rf"\(not set\) for configuration {PLAIN_KEY}"),
        ({"sasl.enabled.mechanisms": "PLAIN", PLAIN_KEY: PLAIN_LINE[:-1]}, rf"\[hidden\] for configuration {PLAIN_KEY}.*semic"),
        ({"sasl.enabled.mechanisms": "PLAIN", PLAIN_KEY: SCRAM_LINE}, r"ScramLoginModule for configuration"),
        (
            PLAIN_ONLY | {PLAIN_KEY.replace("jaas.config", "server.callback.handler.class"): "x.Y"},
            "x.Y for configuration listener",
        ),
        (PLAIN_ONLY | {"connections.max.reauth.ms": "soon"}, "soon for configuration connections.max.reauth.ms"),
    ],
)
def test_what_cannot_be_had_is_told_with_key_value_and_what_is_allowed(texts, complaint):
    with pytest.raises(InvalidConfig, match=complaint) as caught:
        listener(**texts)
    assert "secret" not in str(caught.value)


@each_case(
    ("key", "is_one"),
    [
        (PLAIN_KEY, True),
        ("listener.name.clients.sasl.enabled.mechanisms", True),
        ("listener.name.clients.scram-sha-256.connections.max.reauth.ms", True),
        ("listener.name.clients.gssapi.sasl.jaas.config", False),
        ("listener.name.clients.plain.num.io.threads", False),
        ("listener.name.clients.plain.sasl.jass.config", False),
        ("sasl.jaas.config", False),
    ],
)
def test_the_keys_of_sasl_listeners_are_known(key, is_one):
    assert is_sasl_key(key) is is_one
    listeners = {"listeners": "CLIENTS://:1", "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT"}
    assert bool(BrokerConfig(listeners | {key: PLAIN_LINE}).warnings) is (not is_one and key.startswith("listener.name."))


def test_lines_of_mechanisms_that_are_not_enabled_are_found():
    texts = PLAIN_ONLY | {"listener.name.clients.scram-sha-256.sasl.jaas.config": SCRAM_LINE}
    assert list(SaslConfig("CLIENTS", texts).without_effect(["PLAIN"])) == [
        "listener.name.clients.scram-sha-256.sasl.jaas.config"
    ]


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@each_case(
    ("line", "options"),
    [
        (f"{PLAIN} required;", {}),
        (f"  {PLAIN}\n REQUIRED ;  ", {}),
        (f'{PLAIN} required user_alice="alice-secret";', {"user_alice": "alice-secret"}),
        (f"{PLAIN} required user_alice=alice-secret user_bob = 'b o b';", {"user_alice": "alice-secret", "user_bob": "b o b"}),
        (f'{PLAIN} sufficient user_alice="a\\"b\\\\c;=d";', {"user_alice": 'a"b\\c;=d'}),
        (f'{PLAIN} required user_alice="";', {"user_alice": ""}),
        (f'{PLAIN} required a="\\101\\n"; // the end', {"a": "A\n"}),
        (f"{PLAIN} /* a\ncomment */ required a=b;", {"a": "b"}),
        (f'{PLAIN} required "user_a b"="c";', {"user_a b": "c"}),
        (f"{PLAIN} required user_ä=ö;", {"user_ä": "ö"}),
        (f"{PLAIN} required a=b a=c;", {"a": "c"}),
    ],
)
def test_a_line_is_read_as_kafka_reads_it(line, options):
    assert parse_jaas(line) == (PLAIN, options)


@each_case(
    ("line", "complaint"),
    [
        ("", "empty"),
        ("// nothing", "empty"),
        ("= required;", "does not begin"),
        (f"{PLAIN};", "not followed by one of required"),
        (f"{PLAIN} demanded;", "not followed by one of required"),
        (f"{PLAIN} required a=b", "does not end with a semicolon"),
        (f"{PLAIN} required a;", "option 1 is not of the form"),
        (f"{PLAIN} required a=b c=;", "option 2 is not of the form"),
        (f"{PLAIN} required =b;", "option 1 is not of the form"),
        (f"{PLAIN} required; {PLAIN} required;", "more than one login module"),
        (f'{PLAIN} required a="b;', "quotes"),
        (f"{PLAIN} required a=b@c;", "quotes"),
    ],
)
def test_what_is_wrong_with_a_line_is_told_without_what_stands_in_it(line, complaint):
    with pytest.raises(JaasError, match=complaint) as caught:
        parse_jaas(line)
    assert "b@c" not in str(caught.value)


def test_options_are_secrets():
    assert "hush" not in repr(parse_jaas(f"{PLAIN} required user_alice=hush;"))


@each_case(
    ("key", "concerns"),
    [
        ("listener.name.clients.ssl.keystore.location", False),
        ("listener.name.others.sasl.enabled.mechanisms", False),
        ("listener.name.clients.sasl.enabled.mechanisms", True),
        ("listener.name.clients.plain.sasl.jaas.config", True),
        ("sasl.enabled.mechanisms", True),
        ("connections.max.reauth.ms", True),
    ],
)
def test_a_listener_is_built_again_for_its_own_sasl_configs_only(key, concerns):
    assert (SaslConfig("CLIENTS", {key: "x"}).settings() != SaslConfig("CLIENTS", {}).settings()) is concerns
