"""The same questions to odradek's StandardAuthorizer and to Kafka's, in a JVM.

new     super users, allow.everyone.if.no.acl.found        tabs between the fields
acl     type, name, pattern, principal, host, operation, permission
load
ask     principal, host, operation, type, name             answered 1 or 0, or ! and an exception
any     principal, host, operation, type                   the same: whether it may be done to any resource of the type
"""

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import UUID

from odradek.broker.security.acl.access import StandardAuthorizer
from odradek.common.acls import (
    ANYONE,
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)
from tests.campaigns.kafka_tools.java_program import answered_lines

SOURCE = Path(__file__).with_name("Authorizers.java")
QUESTIONS = 40
_PRINCIPALS = ("User:a", "User:b", "User:c", "Group:a")
_HOSTS = ("127.0.0.1", "10.0.0.1", "0:0:0:0:0:0:0:1")
_RANGES = ("127.0.0.0/8", "10.0.0.0/31", "::/127", "0.0.0.0/0")
_TYPES = tuple(each for each in AclResourceType if each > AclResourceType.ANY)
_OPERATIONS = tuple(each for each in AclOperation if each > AclOperation.ALL)
_NAMES = ("a", "ab", "abc", "abd", "b", "ba", "hard", "hardcode", "-", "Z")


class Action(NamedTuple):
    """A question; ``name`` is None for any resource of the type."""

    principal: str
    host: str
    operation: AclOperation
    resource_type: AclResourceType
    name: str | None


class Story(NamedTuple):
    """A seed's access control lists and questions."""

    seed: int
    super_users: tuple[str, ...]
    allows_without_acls: bool
    bindings: tuple[AclBinding, ...]
    actions: tuple[Action, ...]


def story(seed: int) -> Story:
    """What a seed draws."""
    random = Random(seed)
    types = random.sample(_TYPES, random.randint(1, 3))
    operations = random.sample(_OPERATIONS, random.randint(2, len(_OPERATIONS)))
    denies = random.choice((0.0, 0.2, 0.6))
    bindings = dict.fromkeys(_binding(random, types, operations, denies) for _ in range(random.choice((0, 1, 3, 10, 40))))
    actions = [
        Action(
            random.choice(_PRINCIPALS),
            random.choice(_HOSTS),
            random.choice(operations),
            random.choice(types),
            random.choice(_NAMES) if random.random() < 0.8 else None,
        )
        for _ in range(QUESTIONS)
    ]
    super_users = tuple(random.sample(_PRINCIPALS, random.choice((0, 0, 0, 1))))
    return Story(seed, super_users, random.random() < 0.3, tuple(bindings), tuple(actions))


def _binding(random: Random, types: list[AclResourceType], operations: list[AclOperation], denies: float) -> AclBinding:
    is_wildcard = random.random() < 0.15
    return AclBinding(
        random.choice(types),
        WILDCARD if is_wildcard else random.choice(_NAMES),
        PatternType.PREFIXED if random.random() < 0.4 else PatternType.LITERAL,
        random.choice((*_PRINCIPALS, ANYONE)),
        random.choice((*_HOSTS, random.choice(_RANGES), WILDCARD, WILDCARD, WILDCARD, WILDCARD)),
        random.choice((*operations, AclOperation.ALL)),
        AclPermission.DENY if random.random() < denies else AclPermission.ALLOW,
    )


def odradeks_answers(told: Story) -> list[str]:
    """1 or 0 for each question."""
    authorizer = StandardAuthorizer(told.super_users, allows_without_acls=told.allows_without_acls)
    for number, binding in enumerate(told.bindings):
        authorizer.acls.add(UUID(int=number), binding)
    return [str(int(_decided(authorizer, action))) for action in told.actions]


def _decided(authorizer: StandardAuthorizer, action: Action) -> bool:
    *rest, name = action
    if name is None:
        return authorizer.authorize_by_resource_type(*rest)
    return authorizer.authorize(*rest, name).is_allowed


def kafkas_answers(stories: Iterable[Story], scratch: Path) -> list[list[str]]:
    """What Kafka's class answers to each story's questions."""
    answers = answered_lines(SOURCE, (line for told in stories for line in _lines(told)), scratch)
    return [answers[start : start + QUESTIONS] for start in range(0, len(answers), QUESTIONS)]


def _lines(told: Story) -> Iterable[str]:
    yield "\t".join(("new", ";".join(told.super_users), str(told.allows_without_acls).lower()))
    for each in told.bindings:
        names = each.resource_type.name, each.resource_name, each.pattern_type.name, each.principal, each.host
        yield "\t".join(("acl", *names, each.operation.name, each.permission.name))
    yield "load"
    for principal, host, operation, resource_type, name in told.actions:
        question = principal, host, operation.name, resource_type.name
        yield "\t".join(("any", *question) if name is None else ("ask", *question, name))


def differences(stories: Iterable[Story], answers: Iterable[list[str]]) -> list[str]:
    """In words, what odradek decides otherwise than Kafka did."""
    return [
        f"seed {told.seed}: {action}: ours {ours}, Kafka's {kafkas}"
        for told, of_kafka in zip(stories, answers, strict=True)
        for action, ours, kafkas in zip(told.actions, odradeks_answers(told), of_kafka, strict=True)
        if ours != kafkas
    ]
