"""odradek's answers in the dialogues are those of Apache Kafka 4.4.0, as ``--record`` has kept them."""

import json

import pytest

from tests.campaigns.sasl_differential.__main__ import RECORDED, compare
from tests.campaigns.sasl_differential.brokers import odradek
from tests.campaigns.sasl_differential.dialogues import KNOWN, dialogues, observe
from tests.campaigns.sasl_differential.token_dialogues import add_acls, disabled_dialogues, observe_tokens
from tests.campaigns.sasl_differential.token_dialogues import dialogues as token_dialogues

# The wait for a refusal, or for the end of a session, is what they take: one of each kind will do here.
SHORT = (
    "handshake 1 PLAIN",
    "handshake 0 GSSAPI",
    "PLAIN right",
    "PLAIN beyond ASCII",
    "PLAIN bare right",
    "PLAIN wrong",
    "SCRAM-SHA-256 right",
    "SCRAM-SHA-512 right bare",
    "SCRAM-SHA-256 nobody",
    "OAUTHBEARER right",
    "OAUTHBEARER expired",
    "metadata first",
    "versions 0",
    "versions 99",
    "versions twice",
    "handshake twice",
    "metadata after the handshake",
    "after authentication",
    "no request first",
)


# The wait for the broker to hear of a change is none here.
SHORT_TOKENS = tuple(
    f"token: {name}"
    for name in (
        "create 3",
        "create for User:carol",
        "create for User:bob",
        "a token of another",
        "no name",
        "by a token",
        "log in SCRAM-SHA-512",
        "log in by another HMAC",
        "log in by an expired token",
        "log in by a token that is removed",
        "renew by bob",
        "renew by carol",
        "expire for -1 ms",
        "describe by carol",
    )
)


@pytest.fixture(scope="module")
def kafkas():
    return json.loads(RECORDED.read_text())


def test_odradek_says_what_kafka_said(kafkas, tmp_path):
    with odradek(tmp_path) as listeners:
        ours = observe(listeners, only=SHORT.__contains__)
    assert ours.keys() == set(SHORT)
    assert compare("dialogue", {name: kafkas[name] for name in SHORT}, ours) == 0


def test_odradek_does_with_tokens_what_kafka_did(kafkas, tmp_path):
    with odradek(tmp_path / "tokens") as listeners:
        add_acls(listeners)
        ours = observe_tokens(listeners, token_dialogues(), only=SHORT_TOKENS.__contains__)
    assert ours.keys() == set(SHORT_TOKENS)
    with odradek(tmp_path / "disabled", has_tokens=False) as listeners:
        ours |= observe_tokens(listeners, disabled_dialogues())
    assert compare("dialogue", {name: kafkas[name] for name in ours}, json.loads(json.dumps(ours))) == 0


def test_every_dialogue_is_recorded_and_every_difference_is_one_of_them(kafkas):
    names = [name for name, *_ in dialogues()]
    names += [f"token: {name}" for name, _ in (*token_dialogues(), *disabled_dialogues())]
    assert sorted(names) == sorted(kafkas)
    assert set(names) >= KNOWN.keys()


def test_a_difference_is_found():
    assert compare("dialogue", {"PLAIN right": [1]}, {"PLAIN right": [2]}) == 1
