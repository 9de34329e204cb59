"""What odradek says in the dialogues, against what Apache Kafka 4.3.1 said: ``--record``."""

import json

import pytest

from tests.campaigns.sasl_differential.__main__ import RECORDED, compare
from tests.campaigns.sasl_differential.brokers import odradek
from tests.campaigns.sasl_differential.dialogues import KNOWN, dialogues, observe

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


@pytest.fixture(scope="module")
def kafkas():
    return json.loads(RECORDED.read_text())


def test_odradek_says_what_kafka_said(kafkas, tmp_path):
    with odradek(tmp_path) as listeners:
        ours = observe(listeners, only=SHORT.__contains__)
    assert ours.keys() == set(SHORT)
    assert compare("dialogue", {name: kafkas[name] for name in SHORT}, ours) == 0


def test_every_dialogue_is_recorded_and_every_difference_is_one_of_them(kafkas):
    names = [name for name, *_ in dialogues()]
    assert sorted(names) == sorted(kafkas)
    assert set(names) >= KNOWN.keys()


def test_a_difference_is_found():
    assert compare("dialogue", {"PLAIN right": [1]}, {"PLAIN right": [2]}) == 1
