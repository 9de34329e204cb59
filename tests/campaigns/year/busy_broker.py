"""A broker in the middle of its users, day after day; time, and the disk, are not real.

    by-time    retention.ms of a week          by-size    retention.bytes; idempotent producers that come and go
    latest     compacted: keys come, change, and go by a tombstone
    both       compacted, and deleted from after a month
    ledger     transactions of producers that come and go: committed, aborted, timed out; offsets in them
    day-N      topics that live for a few days

and groups: one that commits all the time, some that commit for a day and are never seen again, some whose members join, commit
and vanish, some that are deleted.

Requests are calls of the handlers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from odradek.broker.api import load_handler
from odradek.broker.start.server import Broker
from odradek.broker.start.shared_server import SharedServer
from odradek.common.config import load
from odradek.common.context import RequestContext, Session
from odradek.controller.metadata.decisions import NewTopic
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from odradek.protocol.produce_request import ProduceRequest
from odradek.protocol.records import Record, build_batch
from odradek.timing.background import InlineBackground
from odradek.timing.reply import Reply
from tests.campaigns.simulation.transactions import requests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.timing.clock import VirtualClock
    from tests.campaigns.year.life import WatchedDisk

_HOUR_MS = 60 * 60 * 1000
_DAY_MS = 24 * _HOUR_MS
_DAY_H = 24
_COMMIT, _JOIN, _SYNC = (messages(key) for key in (ApiKey.OFFSET_COMMIT, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP))
# What is looked for every few seconds or minutes is looked for every hour: the year is longer than the test may be.
_SETTINGS = {
    "log.dirs": "/data",
    "log.roll.ms": str(_DAY_MS),
    "log.cleaner.backoff.ms": str(_HOUR_MS),
    "log.retention.check.interval.ms": str(_HOUR_MS),
    "log.flush.offset.checkpoint.interval.ms": str(_HOUR_MS),
    "log.flush.start.offset.checkpoint.interval.ms": str(_HOUR_MS),
    "producer.id.expiration.check.interval.ms": str(_HOUR_MS),
    "offsets.retention.check.interval.ms": str(_HOUR_MS),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(_HOUR_MS),
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}
_TOPICS = {
    "by-time": {"retention.ms": str(7 * _DAY_MS)},
    "by-size": {"retention.ms": "-1", "retention.bytes": "60000"},
    "latest": {"cleanup.policy": "compact"},
    "both": {"cleanup.policy": "compact,delete", "retention.ms": str(30 * _DAY_MS)},
    "ledger": {"retention.ms": str(7 * _DAY_MS)},
}
_SEGMENT = {"internal.segment.bytes": "15000"}
_KEY_LIFE, _TOPIC_EVERY, _TOPIC_LIFE = 20, 5, 4
_NOBODY = (-1, -1)
_TRY_AGAIN = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS)


class BusyBroker:
    """The broker and all who use it. ``day`` counts from 0."""

    def __init__(self, loop: asyncio.AbstractEventLoop, disk: WatchedDisk, clock: VirtualClock, seed: int) -> None:
        self.day = 0
        self._loop = loop
        self._clock = clock
        self._disk = disk
        self._seed = seed
        self._rng = Random(seed)
        self._topics: deque[str] = deque()

    def start(self) -> None:
        """Serve."""
        self.broker = self._call(self._start)

    def _start(self) -> Broker:
        config, random = load(overrides=_SETTINGS), Random(self._seed)
        background = InlineBackground()
        shared = SharedServer(config, clock=self._clock, background=background, file_system=self._disk, random=random)
        return Broker.start(shared)

    def stop(self) -> None:
        """Stop as its users stop it."""
        self._loop.run_until_complete(self.broker.stop())

    def create_topics(self) -> None:
        """Those that are there all the time, the coordinators' too."""
        self._call(self._create, _TOPICS)
        self.load_coordinators()

    def load_coordinators(self) -> None:
        """Wait until they have loaded what there is."""
        for coordinator in (self.broker.groups, self.broker.transactions):
            self._call(lambda host: host.runtime.partition_for("anything"), coordinator)
            while coordinator.runtime.is_loading:
                self._call(lambda: None)

    def pass_a_day(self) -> None:
        """Use the broker, then let the time pass, hour by hour."""
        self._produce()
        self._run_transactions()
        self._commit()
        self._join_and_vanish()
        if self.day % _TOPIC_EVERY == 0:
            self._change_topics()
        self.day += 1
        for _ in range(_DAY_H):
            self._call(self._clock.advance, _HOUR_MS)

    def ask(self, api_key: ApiKey, version: int, request: Any) -> Any:
        """One request and its response."""
        context = RequestContext(api_key, version, 0, "client", Session("PLAINTEXT", ("127.0.0.1", 1)))
        outcome = self._call(load_handler(api_key), self.broker, context, request)
        if not isinstance(outcome, Reply):
            return outcome
        answers: list[Any] = []
        outcome.when_done(answers.append)
        while not answers:
            self._call(self._clock.advance, 1)
        return answers[0]

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call, and let the loop do what is to be done soon."""

        async def run() -> Any:
            result = function(*arguments)
            await asyncio.sleep(0)
            return result

        return self._loop.run_until_complete(run())

    def _create(self, topics: dict[str, dict[str, str]]) -> None:
        new = [NewTopic(name, 2, configs=list((config | _SEGMENT).items())) for name, config in topics.items()]
        assert [result.error for result in self.broker.controller.create_topics(new).response] == [None] * len(new)

    def _change_topics(self) -> None:
        name = f"day-{self.day}"
        self._call(self._create, {name: {}})
        self._topics.append(name)
        self._send(name, 0, self._records(5))
        if len(self._topics) > _TOPIC_LIFE:
            topics = self.broker.controller.image.topics
            topic_id = topics[self._topics.popleft()].topic_id
            assert self._call(self.broker.controller.delete_topics, [topic_id]).response == {topic_id}
            self._call(self.broker.housekeeping.remove_deleted_after, 0)

    def _records(self, count: int, keys: Iterable[bytes] = (), *, deleted: Iterable[bytes] = ()) -> list[Record]:
        now_ms = self._clock.now_ms()
        plain = [Record(timestamp=now_ms, value=self._rng.randbytes(80)) for _ in range(count)]
        keyed = [Record(timestamp=now_ms, key=key, value=self._rng.randbytes(80)) for key in keys]
        return plain + keyed + [Record(timestamp=now_ms, key=key) for key in deleted]

    def _send(
        self, topic: str, partition: int, records: list[Record], transactional_id: str | None = None, **producer: Any
    ) -> None:
        batch = build_batch(records, transactional=transactional_id is not None, **producer)
        request = ProduceRequest(transactional_id, -1, 1_000, [(topic, [(partition, batch)])])
        response = self.ask(ApiKey.PRODUCE, 12, request)
        assert response.responses[0].partition_responses[0].error_code == 0

    def _produce(self) -> None:
        producer_id = self._init(None)[0]
        for partition in range(2):
            self._send("by-time", partition, self._records(20))
            self._send("by-size", partition, self._records(20), producer_id=producer_id, producer_epoch=0, base_sequence=0)
            keys = [b"%d" % self._rng.randint(0, 100) for _ in range(15)] + [b"of day %d" % self.day]
            gone = [b"of day %d" % (self.day - _KEY_LIFE)] if self.day >= _KEY_LIFE else []
            for topic in ("latest", "both"):
                self._send(topic, partition, self._records(0, keys, deleted=gone))

    def _init(self, transactional_id: str | None) -> tuple[int, int]:
        plan = SimpleNamespace(transactional_id=transactional_id, timeout_ms=60_000, is_two_phase=False)
        response = self.ask(ApiKey.INIT_PRODUCER_ID, 5, requests.init(plan, _NOBODY))
        while response.error_code in _TRY_AGAIN:
            self._call(lambda: None)
            response = self.ask(ApiKey.INIT_PRODUCER_ID, 5, requests.init(plan, _NOBODY))
        assert response.error_code == 0
        return response.producer_id, response.producer_epoch

    def _run_transactions(self) -> None:
        """One of a producer that is there all year, and two of those that come once; the second's often has no end."""
        self._transact("regular", commit=self.day % 3 > 0)
        self._transact(f"once-{self.day}", commit=True)
        self._transact(f"twice-{self.day // 2}", commit=None if self.day % 2 else False)

    def _transact(self, name: str, *, commit: bool | None) -> None:
        identity = self._init(name)
        producer = {"producer_id": identity[0], "producer_epoch": identity[1], "base_sequence": 0}
        for partition in range(2):
            self._send("ledger", partition, self._records(5), name, **producer)
        group = f"of-{name}"
        self.ask(ApiKey.ADD_OFFSETS_TO_TXN, 3, requests.add_offsets(name, identity, group))
        response = self.ask(
            ApiKey.TXN_OFFSET_COMMIT, 3, requests.txn_offset_commit(name, identity, group, {("by-time", 0): self.day})
        )
        assert requests.offsets_committed(response) == 0
        if commit is not None:
            assert self.ask(ApiKey.END_TXN, 5, requests.end(name, identity, commit=commit)).error_code == 0

    def _commit(self) -> None:
        for group in ("steady", f"short-{self.day // 2}", f"deleted-{self.day}"):
            for topic in _TOPICS:
                response = self.ask(ApiKey.OFFSET_COMMIT, 8, requests.commit(group, (topic, self.day % 2), self.day))
                assert response.topics[0].partitions[0].error_code == 0
        response = self.ask(ApiKey.DELETE_GROUPS, 2, requests.delete(f"deleted-{self.day}"))
        assert response.results[0].error_code == 0

    def _join_and_vanish(self) -> None:
        """A member that is not heard of any more after its first commit: its session ends, its group is empty, then forgotten."""
        group = f"members-{self.day}"
        protocols = [_JOIN.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")]
        joined = self.ask(
            ApiKey.JOIN_GROUP,
            3,
            _JOIN.JoinGroupRequest(
                group_id=group,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                member_id="",
                protocol_type="consumer",
                protocols=protocols,
            ),
        )
        assert joined.error_code == 0
        assignments = [_SYNC.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")]
        synced = self.ask(
            ApiKey.SYNC_GROUP,
            3,
            _SYNC.SyncGroupRequest(
                group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, assignments=assignments
            ),
        )
        assert synced.error_code == 0
        committed = self.ask(
            ApiKey.OFFSET_COMMIT,
            8,
            _COMMIT.OffsetCommitRequest(
                group_id=group,
                member_id=joined.member_id,
                generation_id_or_member_epoch=joined.generation_id,
                topics=requests.commit(group, ("by-time", 0), self.day).topics,
            ),
        )
        assert committed.topics[0].partitions[0].error_code == 0
