"""Slice ``transactions``: scripts of transactions from seeds.

Two producers of one transactional id, one of another and an idempotent one begin, add partitions and offsets, write, commit,
abort, and fence each other, with their own producer id and epoch or with wrong ones, in sequence and out of it; a reader looks
on.
"""

import random
from collections.abc import Iterable, Iterator
from typing import Any

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.wire_differential.cases import setup
from tests.campaigns.wire_differential.cases.drawn import DrawnSteps
from tests.campaigns.wire_differential.cases.setup import SIMPLE_GROUP, TOPIC
from tests.campaigns.wire_differential.script import Batch, Ref, Script, Step

_STEPS = 30
_PREPARED = 0.95
# Producer and its transactional id.
_PRODUCERS: dict[str, str | None] = {"p1": "@x1", "p2": "@x1", "p3": "@x2", "p4": None}
_TIMEOUT_MS = 60_000
# A producer id that no broker has come to.
_NOBODYS_ID = 7_000_000
_STILL_GOING_ON = ("Empty", "Ongoing", "CompleteCommit", "CompleteAbort", "Dead", "")


def scripts(seeds: Iterable[int]) -> Iterator[Script]:
    """One for each seed."""
    for seed in seeds:
        yield Script(f"transactions/{seed}", tuple(_Story(random.Random(seed)).steps()))


class _Story(DrawnSteps):
    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._sequences: dict[tuple[str, int], int] = {}

    def steps(self) -> Iterator[Step]:
        yield from setup.topic()
        yield from setup.offsets()
        for who in _PRODUCERS:
            if self._rng.random() < _PREPARED and who != "p2":
                yield from self._init(who)
        acts = (self._init, self._add, self._add_offsets, self._commit_offsets, self._produce, self._end, self._read, self._look)
        for _ in range(_STEPS):
            self._number += 1
            who = self._rng.choices(tuple(_PRODUCERS), (6, 1, 3, 1))[0]
            act = self._rng.choices(acts, (1, 8, 2, 2, 8, 7, 3, 3))[0]
            yield from self._produce(who) if _PRODUCERS[who] is None else act(who)
        yield from self._read("p1")

    def _id(self, who: str) -> str:
        own = _PRODUCERS[who]
        return own if own is not None and self._rng.random() < 0.97 else self._rng.choice(("@x1", "@unknown", ""))

    def _producer(self, who: str) -> dict[str, Any]:
        drawn = self._rng.random()
        pid, epoch = Ref(f"{who}.pid", _NOBODYS_ID), Ref(f"{who}.epoch", 0)
        if drawn > 0.96:
            pid = Ref(f"{self._rng.choice(tuple(_PRODUCERS))}.pid", _NOBODYS_ID + 1)
        elif drawn > 0.9:
            epoch = Ref(f"{who}.epoch", 0, plus=self._rng.choice((1, -1)))
        return {"producer_id": pid, "producer_epoch": epoch}

    def _init(self, who: str) -> Iterator[Step]:
        version = self._version(ApiKey.INIT_PRODUCER_ID, 5)
        again = self._producer(who) if self._rng.random() < 0.3 else {"producer_id": -1, "producer_epoch": -1}
        timeout_ms = self._rng.choice((_TIMEOUT_MS,) * 12 + (0, -1, 2**31 - 1))
        fields = {"transactional_id": _PRODUCERS[who], "transaction_timeout_ms": timeout_ms, **again}
        bind = {f"{who}.pid": "producer_id", f"{who}.epoch": "producer_epoch"}
        self._sequences = {key: last for key, last in self._sequences.items() if key[0] != who}
        yield Step(self._label("begins anew", who), ApiKey.INIT_PRODUCER_ID, version, fields, bind=bind)

    def _add(self, who: str) -> Iterator[Step]:
        version = self._version(ApiKey.ADD_PARTITIONS_TO_TXN)
        producer = {"transactional_id": self._id(who), **self._producer(who)}
        name = self._rng.choice((TOPIC,) * 9 + ("@none",))
        topics = [{"name": name, "partitions": self._rng.choice(([0], [1], [0, 1], [0, 9]))}]
        fields = {
            **{f"v3_and_below_{field}": value for field, value in producer.items()},
            "v3_and_below_topics": topics,
            "transactions": [{**producer, "verify_only": self._rng.random() < 0.3, "topics": topics}],
        }
        yield Step(self._label("adds", who), ApiKey.ADD_PARTITIONS_TO_TXN, version, fields)

    def _add_offsets(self, who: str) -> Iterator[Step]:
        fields = {"transactional_id": self._id(who), **self._producer(who), "group_id": SIMPLE_GROUP}
        yield Step(self._label("adds offsets", who), ApiKey.ADD_OFFSETS_TO_TXN, self._version(ApiKey.ADD_OFFSETS_TO_TXN), fields)

    def _commit_offsets(self, who: str) -> Iterator[Step]:
        offset = {"partition_index": 0, "committed_offset": self._number, "committed_metadata": "t", "committed_leader_epoch": -1}
        alone = self._rng.random() < 0.8
        fields = {
            "transactional_id": self._id(who),
            "group_id": SIMPLE_GROUP,
            **self._producer(who),
            "topics": [{"name": TOPIC, "topic_id": Ref("tid"), "partitions": [offset]}],
            "generation_id_or_member_epoch": -1 if alone else 3,
            "member_id": "" if alone else "nobody",
        }
        yield Step(self._label("commits offsets", who), ApiKey.TXN_OFFSET_COMMIT, self._version(ApiKey.TXN_OFFSET_COMMIT), fields)

    def _produce(self, who: str) -> Iterator[Step]:
        partition = self._rng.choice((0, 1))
        key = (who, partition)
        sequence = self._sequences.get(key, 0)
        drawn = self._rng.random()
        if drawn < 0.08:
            sequence = max(0, sequence - 1)
        elif drawn < 0.14:
            sequence += self._rng.choice((1, 5))
        else:
            self._sequences[key] = sequence + 1
        is_transactional = _PRODUCERS[who] is not None and self._rng.random() < 0.95
        batch = Batch(1, {**self._producer(who), "base_sequence": sequence, "transactional": is_transactional})
        data = [{"name": TOPIC, "topic_id": Ref("tid"), "partition_data": [{"index": partition, "records": batch}]}]
        fields = {
            "transactional_id": _PRODUCERS[who] if is_transactional else None,
            "acks": self._rng.choice((-1,) * 9 + (1,)),
            "timeout_ms": 5_000,
            "topic_data": data,
        }
        yield Step(self._label("produces", who), ApiKey.PRODUCE, self._version(ApiKey.PRODUCE), fields)

    def _end(self, who: str) -> Iterator[Step]:
        version = self._version(ApiKey.END_TXN)
        fields = {"transactional_id": self._id(who), **self._producer(who), "committed": self._rng.random() < 0.6}
        bind = (
            {f"{who}.pid": "producer_id", f"{who}.epoch": "producer_epoch"} if version >= 5 and self._rng.random() < 0.9 else {}
        )
        yield Step(self._label("ends", who), ApiKey.END_TXN, version, fields, bind=bind)
        yield from self._settled()

    def _settled(self) -> Iterator[Step]:
        """Until the markers are written, which a broker does after its answer."""
        asked = {"transactional_ids": ["@x1", "@x2"]}
        until = ("transaction_states.transaction_state", _STILL_GOING_ON)
        yield Step("", ApiKey.DESCRIBE_TRANSACTIONS, 0, asked, until=until)

    def _read(self, who: str) -> Iterator[Step]:
        level = self._rng.choice((0, 1))
        partitions = [
            {
                "partition": each,
                "current_leader_epoch": -1,
                "fetch_offset": 0,
                "last_fetched_epoch": -1,
                "partition_max_bytes": 1 << 20,
            }
            for each in (0, 1)
        ]
        fetched = {
            "replica_id": -1,
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": 1 << 20,
            "isolation_level": level,
            "session_id": 0,
            "session_epoch": -1,
            "topics": [{"topic": TOPIC, "topic_id": Ref("tid"), "partitions": partitions}],
        }
        yield Step(self._label("reads", who), ApiKey.FETCH, self._version(ApiKey.FETCH), fetched)
        listed = [{"partition_index": each, "current_leader_epoch": -1, "timestamp": -1} for each in (0, 1)]
        fields = {"replica_id": -1, "isolation_level": level, "topics": [{"name": TOPIC, "partitions": listed}]}
        yield Step(self._label("lists ends", who), ApiKey.LIST_OFFSETS, self._version(ApiKey.LIST_OFFSETS), fields)
        group = {"group_id": SIMPLE_GROUP, "topics": None, "member_epoch": -1}
        fields = {"group_id": SIMPLE_GROUP, "topics": None, "groups": [group], "require_stable": self._rng.random() < 0.5}
        yield Step(self._label("reads offsets", who), ApiKey.OFFSET_FETCH, self._rng.randint(2, 10), fields)

    def _look(self, who: str) -> Iterator[Step]:
        yield Step(self._label("describes", who), ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": ["@x1", "@x2", "@x3"]})
        yield Step(
            self._label("lists", who), ApiKey.LIST_TRANSACTIONS, self._version(ApiKey.LIST_TRANSACTIONS), {"duration_filter": -1}
        )
        topics = [{"name": TOPIC, "partition_indexes": [0, 1]}]
        yield Step(self._label("lists producers", who), ApiKey.DESCRIBE_PRODUCERS, 0, {"topics": topics})
