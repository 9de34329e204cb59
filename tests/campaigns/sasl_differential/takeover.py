"""Delegation tokens of a data directory that odradek, Apache Kafka and odradek again open one after the other."""

from pathlib import Path
from typing import Any

from tests.campaigns.sasl_differential.brokers import Listeners, kafka, odradek
from tests.campaigns.sasl_differential.token_dialogues import Tokens, add_acls


def taken_over(scratch: Path) -> list[str]:
    """In words, what one of them finds or does otherwise than the one before it."""
    made: dict[str, tuple[str, bytes]] = {}
    directory = scratch / "odradek"
    with odradek(scratch) as ours:
        add_acls(ours)
        at_first = _visit(ours, made, "odradek's")
    with kafka(scratch / "kafka", data=directory) as theirs:
        at_kafka = _visit(theirs, made, "Kafka's")
    with odradek(scratch) as ours:
        at_last = _visit(ours, made, "another")
    return [
        *(f"Kafka: {each}" for each in _differences(at_first[1], at_kafka[0])),
        *(f"odradek again: {each}" for each in _differences(at_kafka[1], at_last[0])),
    ]


def _visit(listeners: Listeners, made: dict[str, tuple[str, bytes]], name: str) -> tuple[list[Any], list[Any]]:
    """What the tokens are found to be, and what they are left as, with one more and one less."""
    tokens = Tokens(listeners)
    tokens.made = made
    found = _observed(tokens)
    for each in made:
        tokens.renew("bob", each, 600_000)
    tokens.create("alice", name, renewers=["User:bob"])
    tokens.create("alice", "removed", owner_principal_type="User", owner_principal_name="carol")
    tokens.expire("carol", "removed")
    del made["removed"]
    left = _observed(tokens)
    tokens.close()
    return found, left


def _observed(tokens: Tokens) -> list[Any]:
    """All descriptions, and what comes of logging in by each token."""
    tokens.seen.clear()
    tokens.describe("alice", "User:alice", "User:carol")
    for name in tokens.made:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            tokens.log_in(name, mechanism)
            tokens.topics(name, "carols")
    return list(tokens.seen)


def _differences(before: list[Any], after: list[Any]) -> list[str]:
    if len(before) != len(after):
        return [f"{len(before)} observations, then {len(after)}"]
    return [f"{one}, then {other}" for one, other in zip(before, after, strict=True) if one != other]
