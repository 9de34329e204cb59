"""Slice ``groups``: scripts of classic groups from seeds.

Up to four members, each with a connection of its own, join, sync, send heartbeats, commit, fetch, leave and are removed, in any
order: with their own member id and generation, those of another, of the past or of nobody; dynamic and static; with protocols
in common and without. Time is not part of it: no session ends while a script runs.
"""

import random
from collections.abc import Iterable, Iterator
from typing import Any

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.wire_differential.cases import setup
from tests.campaigns.wire_differential.cases.drawn import DrawnSteps
from tests.campaigns.wire_differential.cases.setup import ASSIGNMENT, GROUP, SUBSCRIPTION, TOPIC
from tests.campaigns.wire_differential.script import Ref, Script, Step

_STEPS = 30
_STRANGER = 0.1
_MEMBERS = ("m1", "m2", "m3", "m4")
_SESSION_MS = 45_000
_FIRST_STATIC = {ApiKey.JOIN_GROUP: 5, ApiKey.SYNC_GROUP: 3, ApiKey.HEARTBEAT: 3, ApiKey.LEAVE_GROUP: 3, ApiKey.OFFSET_COMMIT: 7}


def scripts(seeds: Iterable[int]) -> Iterator[Script]:
    """One for each seed."""
    for seed in seeds:
        yield Script(f"groups/{seed}", tuple(_Group(random.Random(seed)).steps()))


class _Group(DrawnSteps):
    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._joined: set[str] = set()
        self._static = {who: rng.choice((None, None, f"i-{who}", "i-shared")) for who in _MEMBERS}

    def steps(self) -> Iterator[Step]:
        yield from setup.topic()
        for _ in range(_STEPS):
            act = self._rng.choices(
                (self._join, self._sync, self._heartbeat, self._commit, self._fetch, self._leave, self._look, self._delete),
                (10, 8, 5, 3, 2, 2, 5, 1),
            )[0]
            self._number += 1
            who = self._rng.choice(_MEMBERS)
            # Who has never joined has little else to do.
            yield act(who) if who in self._joined or self._rng.random() < _STRANGER else self._join(who)
        yield Step("the end", ApiKey.DESCRIBE_GROUPS, 5, {"groups": [GROUP]})

    def _member(self, who: str) -> Any:
        """Mostly the member's own id, else another's, or nobody's."""
        drawn = self._rng.random()
        if drawn < 0.85:
            return Ref(f"{who}.member", "")
        return Ref(f"{self._rng.choice(_MEMBERS)}.member", "") if drawn < 0.95 else self._rng.choice(("", "nobody"))

    def _generation(self, who: str) -> Any:
        drawn = self._rng.random()
        if drawn < 0.85:
            return Ref(f"{who}.generation", 1)
        return self._rng.choice((-1, 0, 1, 99, Ref(f"{who}.generation", 1, plus=1), Ref(f"{who}.generation", 1, plus=-1)))

    def _instance(self, who: str, api_key: ApiKey, version: int) -> dict[str, Any]:
        if version < _FIRST_STATIC[api_key] or self._rng.random() < 0.05:
            return {}
        return {"group_instance_id": self._static[who]}

    def _join(self, who: str) -> Step:
        version = self._version(ApiKey.JOIN_GROUP)
        self._joined.add(who)
        names = self._rng.choices(
            (("range",), ("range", "roundrobin"), ("roundrobin", "range"), ("sticky",), ()), (9, 5, 3, 1, 1)
        )[0]
        return Step(
            self._label("joins", who),
            ApiKey.JOIN_GROUP,
            version,
            {
                "group_id": GROUP,
                "session_timeout_ms": self._rng.choice((_SESSION_MS,) * 29 + (1,)),
                "rebalance_timeout_ms": _SESSION_MS,
                "member_id": self._member(who),
                "protocol_type": self._rng.choice(("consumer",) * 60 + ("connect", "")),
                "protocols": [{"name": name, "metadata": SUBSCRIPTION} for name in names],
                **self._instance(who, ApiKey.JOIN_GROUP, version),
            },
            bind={f"{who}.member": "member_id", f"{who}.generation": "generation_id"},
            connection=who,
            parks=True,
        )

    def _sync(self, who: str) -> Step:
        version = self._version(ApiKey.SYNC_GROUP)
        assigned = [
            {"member_id": Ref(f"{each}.member", ""), "assignment": ASSIGNMENT}
            for each in self._rng.choice((_MEMBERS, (who,), ()))
        ]
        protocol = self._rng.choice(
            (("consumer", "range"), (None, None), ("consumer", None), ("connect", "range"), ("consumer", "no"))
        )
        return Step(
            self._label("syncs", who),
            ApiKey.SYNC_GROUP,
            version,
            {
                "group_id": GROUP,
                "generation_id": self._generation(who),
                "member_id": self._member(who),
                "assignments": assigned,
                "protocol_type": protocol[0],
                "protocol_name": protocol[1],
                **self._instance(who, ApiKey.SYNC_GROUP, version),
            },
            connection=who,
            parks=True,
        )

    def _heartbeat(self, who: str) -> Step:
        version = self._version(ApiKey.HEARTBEAT)
        instance = self._instance(who, ApiKey.HEARTBEAT, version)
        asked = {"group_id": GROUP, "generation_id": self._generation(who), "member_id": self._member(who), **instance}
        return Step(self._label("beats", who), ApiKey.HEARTBEAT, version, asked, connection=who)

    def _commit(self, who: str) -> Step:
        version = self._version(ApiKey.OFFSET_COMMIT)
        offset = {
            "partition_index": self._rng.choice((0, 1, 2)),
            "committed_offset": self._number,
            "committed_metadata": self._rng.choice((None, "", "note")),
            "committed_leader_epoch": self._rng.choice((-1, 0)),
        }
        alone = self._rng.random() < 0.2
        return Step(
            self._label("commits", who),
            ApiKey.OFFSET_COMMIT,
            version,
            {
                "group_id": GROUP,
                "generation_id_or_member_epoch": -1 if alone else self._generation(who),
                "member_id": "" if alone else self._member(who),
                "retention_time_ms": -1,
                "topics": [{"name": TOPIC, "topic_id": Ref("tid"), "partitions": [offset]}],
                **self._instance(who, ApiKey.OFFSET_COMMIT, version),
            },
            connection=who,
        )

    def _fetch(self, who: str) -> Step:
        topics = self._rng.choice((None, [{"name": TOPIC, "topic_id": Ref("tid"), "partition_indexes": [0, 1, 2]}]))
        group = {"group_id": GROUP, "topics": topics, "member_epoch": -1}
        fields = {"group_id": GROUP, "topics": topics or [], "groups": [group], "require_stable": self._rng.random() < 0.5}
        return Step(self._label("fetches", who), ApiKey.OFFSET_FETCH, self._version(ApiKey.OFFSET_FETCH), fields, connection=who)

    def _leave(self, who: str) -> Step:
        version = self._version(ApiKey.LEAVE_GROUP)
        leaving = [who] if self._rng.random() < 0.7 else [who, self._rng.choice(_MEMBERS)]
        members = [
            {"member_id": self._rng.choice((self._member(each), "")), "group_instance_id": self._static[each]} for each in leaving
        ]
        fields = {"group_id": GROUP, "member_id": self._member(who), "members": members}
        return Step(self._label("leaves", who), ApiKey.LEAVE_GROUP, version, fields, connection=who)

    def _look(self, who: str) -> Step:
        if self._rng.random() < 0.3:
            return Step(self._label("lists", who), ApiKey.LIST_GROUPS, self._version(ApiKey.LIST_GROUPS), {}, connection="looks")
        version = self._version(ApiKey.DESCRIBE_GROUPS)
        return Step(self._label("describes", who), ApiKey.DESCRIBE_GROUPS, version, {"groups": [GROUP]}, connection="looks")

    def _delete(self, who: str) -> Step:
        if self._rng.random() < 0.5:
            version = self._version(ApiKey.DELETE_GROUPS)
            return Step(self._label("deletes", who), ApiKey.DELETE_GROUPS, version, {"groups_names": [GROUP]}, connection="looks")
        fields = {"group_id": GROUP, "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0}]}]}
        return Step(self._label("deletes offsets", who), ApiKey.OFFSET_DELETE, 0, fields, connection="looks")
