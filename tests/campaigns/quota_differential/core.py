"""The same histories of clients and quotas to odradek's quota managers and to Kafka's, in a JVM.

new         time, kind, samples, seconds of a sample       tabs between the fields
quota       time, user, client id, value                   - for a user or client id that is not named, default, - for a removal
record      time, user, client id, value                   answered by a throttle time in ms
back        time, user, client id, value                   what was recorded is taken back
most        time, user, client id                          answered by what may be taken at once
strict      time, user, client id, partitions              answered by a throttle time, and refused
permissive  the same

Every client has a quota at all times, by a default user: what Kafka records of a client before it has one, odradek does not.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Final, Literal, NamedTuple, TypeAlias

from odradek.broker.quotas.client_quota_manager import ClientQuotaManager, MutationQuota, MutationQuotaManager, QuotaWindow
from odradek.controller.metadata.client_quotas import (
    CLIENT_ID,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    ClientQuotas,
    QuotaEntity,
    quota_record,
)
from odradek.protocol.errors import KafkaError
from odradek.timing.clock import VirtualClock
from tests.campaigns.kafka_tools.java_program import answered_lines

SOURCE = Path(__file__).with_name("Quotas.java")
STEPS: Final = 120
_BEGIN_MS: Final = 1_700_000_000_000
_USERS: Final = ("ada", "ben")
_CLIENT_IDS: Final = ("one", "two")
_NOBODY: Final = "-"
_DEFAULT: Final = "default"

Kind: TypeAlias = Literal["bytes", "request", "mutation"]


class Step(NamedTuple):
    """A line."""

    what: str
    now_ms: int
    user: str
    client_id: str
    value: float | None = None


class Story(NamedTuple):
    """What a seed draws."""

    seed: int
    kind: Kind
    window: QuotaWindow
    steps: tuple[Step, ...]


def story(seed: int) -> Story:
    """A history of a few clients."""
    random = Random(seed)
    kind: Kind = random.choice(("bytes", "bytes", "request", "mutation"))
    window = random.choice((QuotaWindow(), QuotaWindow(), QuotaWindow(2, 1), QuotaWindow(5, 3), QuotaWindow(1, 1)))
    rate = {"bytes": 10_000.0, "request": 5.0, "mutation": 4.0}[kind]
    now_ms = _BEGIN_MS
    steps = [Step("quota", now_ms, _DEFAULT, _NOBODY, _drawn_value(random, rate))]
    # Mean time between steps: clients in a hurry, and clients that sleep.
    pace_ms = random.choice((5, 50, 400, 3_000))
    for _ in range(STEPS):
        now_ms += int(random.expovariate(1 / pace_ms)) if random.random() < 0.97 else random.choice((1_000, 11_000, 100_000))
        steps += _drawn(random, kind, now_ms, rate, pace_ms)
    return Story(seed, kind, window, tuple(steps))


def _drawn(random: Random, kind: Kind, now_ms: int, rate: float, pace_ms: int) -> list[Step]:
    user, client_id = random.choice(_USERS), random.choice(_CLIENT_IDS)
    draw = random.random()
    if draw < 0.04:
        names = random.choice((*_USERS, _DEFAULT, _NOBODY)), random.choice((*_CLIENT_IDS, _DEFAULT, _NOBODY))
        if names == (_NOBODY, _NOBODY):
            return []
        must_stay = names == (_DEFAULT, _NOBODY)
        return [Step("quota", now_ms, *names, None if random.random() < 0.4 and not must_stay else _drawn_value(random, rate))]
    if kind == "mutation":
        what = "strict" if random.random() < 0.7 else "permissive"
        return [Step(what, now_ms, user, client_id, random.choice((1, 1, 2, 5, 50)))]
    if draw < 0.08:
        return [Step("most", now_ms, user, client_id)]
    value = random.uniform(0, 4) * rate * max(pace_ms, 50) / 1_000
    if kind == "bytes":
        value = float(int(value))
    record = Step("record", now_ms, user, client_id, value)
    return [record, record._replace(what="back")] if draw < 0.2 else [record]


def _drawn_value(random: Random, rate: float) -> float:
    return rate * random.choice((0.25, 1, 1, 3, 10))


def odradeks_answers(told: Story) -> list[str]:
    """What odradek's managers answer."""
    quotas = ClientQuotas()
    key = {"bytes": PRODUCER_BYTE_RATE, "request": REQUEST_PERCENTAGE, "mutation": CONTROLLER_MUTATION_RATE}[told.kind]
    clock = VirtualClock()

    def now() -> int:
        return int(clock.monotonic_ms())

    manager = ClientQuotaManager(
        key, quotas, told.window, most_ms=told.window.sample_s * 1_000 if told.kind == "request" else None
    )
    mutations = MutationQuotaManager(quotas, told.window, now)
    answers = []
    for what, now_ms, user, client_id, value in told.steps:
        clock.advance(now_ms - _BEGIN_MS - now())
        if what == "quota":
            quotas.replay(quota_record(_entity(user, client_id), key, value))
        elif what == "most":
            most = manager.most_in_window(user, client_id, now())
            assert most is not None
            answers.append(repr(most))
        elif what == "record":
            answers.append(str(manager.record(user, client_id, value or 0.0, now())))
        elif what == "back":
            manager.take_back(user, client_id, value or 0.0, now())
        else:
            sensor = mutations.sensor(user, client_id, now())
            assert sensor is not None
            answers.append(_mutate(MutationQuota(sensor, now, is_strict=what == "strict"), int(value or 0)))
    return answers


def _mutate(quota: MutationQuota, partitions: int) -> str:
    try:
        quota.take(partitions)
    except KafkaError:
        return f"{quota.throttle_ms} refused"
    return str(quota.throttle_ms)


def _entity(user: str, client_id: str) -> QuotaEntity:
    named = {USER: user, CLIENT_ID: client_id}
    return QuotaEntity.of({kind: None if name == _DEFAULT else name for kind, name in named.items() if name != _NOBODY})


def kafkas_answers(stories: Sequence[Story], scratch: Path) -> list[list[str]]:
    """What Kafka's classes answer to each story."""
    answers = iter(answered_lines(SOURCE, (line for told in stories for line in _lines(told)), scratch))
    return [[next(answers) for step in told.steps if step.what not in {"quota", "back"}] for told in stories]


def _lines(told: Story) -> Iterable[str]:
    yield "\t".join(("new", str(_BEGIN_MS), told.kind, *map(str, told.window)))
    for what, now_ms, user, client_id, value in told.steps:
        yield "\t".join((what, str(now_ms), user, client_id, "-" if value is None else repr(float(value))))


def differences(stories: Iterable[Story], answers: Iterable[list[str]]) -> list[str]:
    """In words, what odradek answers otherwise than Kafka did: of each story the first."""
    found = []
    for told, of_kafka in zip(stories, answers, strict=True):
        asked = [step for step in told.steps if step.what not in {"quota", "back"}]
        for step, ours, kafkas in zip(asked, odradeks_answers(told), of_kafka, strict=True):
            if ours != kafkas and not (step.what == "most" and float(ours) == float(kafkas)):
                found.append(f"seed {told.seed}, {told.kind}, {told.window}: {step}: ours {ours}, Kafka's {kafkas}")
                break
    return found
