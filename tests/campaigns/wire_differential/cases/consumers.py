"""Slice ``consumers``: scripts of consumer groups, stories and from seeds.

Of the seeds, up to four members send heartbeats, commit, fetch, leave and come back, in any order: with their own epoch, one of
the past, another's or none; dynamic and static; with all they own, some of it, none, or what they never had. Time is not part of
it: no session and no rebalance timeout ends while a script runs. Nor are patterns, which are resolved beside the requests.
"""

import random
from collections.abc import Iterable, Iterator
from typing import Any

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.wire_differential.cases import consumer_stories
from tests.campaigns.wire_differential.cases.consumer_steps import (
    OTHER,
    beat,
    commit,
    epoch_of,
    fetch,
    looks,
    owned,
    owned_by,
    topics,
)
from tests.campaigns.wire_differential.cases.drawn import DrawnSteps
from tests.campaigns.wire_differential.cases.setup import GROUP, TOPIC
from tests.campaigns.wire_differential.script import Script, Step

_STEPS = 40
_STRANGER = 0.1
_MEMBERS = ("m1", "m2", "m3", "m4")


def scripts(seeds: Iterable[int]) -> Iterator[Script]:
    """The stories, and one for each seed."""
    yield from consumer_stories.scripts()
    for seed in seeds:
        yield Script(f"consumers/{seed}", tuple(_ConsumerGroup(random.Random(seed)).steps()))


class _ConsumerGroup(DrawnSteps):
    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._joined: set[str] = set()
        self._static = {who: rng.choice((None, None, f"i-{who}", "i-shared")) for who in _MEMBERS}

    def steps(self) -> Iterator[Step]:
        yield from topics(t=4, u=3)
        for _ in range(_STEPS):
            act = self._rng.choices(
                (self._beat, self._join, self._commit, self._fetch, self._leave, self._look, self._delete),
                (16, 3, 4, 2, 2, 3, 1),
            )[0]
            self._number += 1
            who = self._rng.choice(_MEMBERS)
            # Who has never joined has little else to do.
            yield from act(who) if who in self._joined or self._rng.random() < _STRANGER else self._join(who)
        yield from looks("the end")

    def _epoch(self, who: str) -> Any:
        drawn = self._rng.random()
        if drawn < 0.85:
            return epoch_of(who)
        return self._rng.choice((1, 99, epoch_of(who, 1), epoch_of(who, -1), epoch_of(self._rng.choice(_MEMBERS))))

    def _instance(self, who: str) -> str | None:
        if self._rng.random() < 0.95:
            return self._static[who]
        return self._rng.choice((None, "i-shared", "i-nobody"))

    def _names(self) -> list[str]:
        return self._rng.choices(([TOPIC], [TOPIC, OTHER], [OTHER], [], [TOPIC, "@no"]), (6, 6, 2, 1, 1))[0]

    def _join(self, who: str) -> Iterator[Step]:
        # A dynamic member that takes an instance id loses its partitions in Kafka.
        self._joined.add(who)
        fields = {"instance_id": self._static[who], "subscribed_topic_names": self._names()}
        yield beat(self._label("joins", who), who, 0, self._version(ApiKey.CONSUMER_GROUP_HEARTBEAT), **fields)

    def _beat(self, who: str) -> Iterator[Step]:
        partitions = self._rng.choices(
            (owned_by(who), None, [], owned_by(self._rng.choice(_MEMBERS)), owned(self._rng.randrange(5))), (12, 5, 2, 1, 1)
        )[0]
        fields: dict[str, Any] = {"instance_id": self._instance(who), "topic_partitions": partitions}
        if self._rng.random() < 0.15:
            fields["subscribed_topic_names"] = self._names()
        if self._rng.random() < 0.1:
            fields["rebalance_timeout_ms"] = self._rng.choice((60_000, 50_000))
        version = self._version(ApiKey.CONSUMER_GROUP_HEARTBEAT)
        yield beat(self._label("beats", who), who, self._epoch(who), version, **fields)

    def _commit(self, who: str) -> Iterator[Step]:
        version = self._version(ApiKey.OFFSET_COMMIT)
        alone = self._rng.random() < 0.15
        instance = {"group_instance_id": self._instance(who)} if version >= 7 else {}
        label = self._label("commits", who)
        yield commit(label, "" if alone else who, -1 if alone else self._epoch(who), version, **instance)

    def _fetch(self, who: str) -> Iterator[Step]:
        yield fetch(self._label("fetches", who), who, self._epoch(who), self._version(ApiKey.OFFSET_FETCH))

    def _leave(self, who: str) -> Iterator[Step]:
        if self._rng.random() < 0.2:
            members = [{"member_id": self._rng.choice((f"@{who}", "")), "group_instance_id": self._static[who]}]
            yield Step(self._label("leaves", who), ApiKey.LEAVE_GROUP, 5, {"group_id": GROUP, "members": members})
            return
        epoch = self._rng.choice((-1, -2))
        version = self._version(ApiKey.CONSUMER_GROUP_HEARTBEAT)
        yield beat(self._label(f"leaves at {epoch}", who), who, epoch, version, instance_id=self._instance(who))

    def _look(self, who: str) -> Iterator[Step]:
        yield from looks(self._label("looks", who))

    def _delete(self, who: str) -> Iterator[Step]:
        if self._rng.random() < 0.5:
            yield Step(self._label("deletes", who), ApiKey.DELETE_GROUPS, 3, {"groups_names": [GROUP]})
            return
        fields = {"group_id": GROUP, "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0}]}]}
        yield Step(self._label("deletes offsets", who), ApiKey.OFFSET_DELETE, 0, fields)
