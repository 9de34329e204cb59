"""Clients that work all at once, while threads sync, compact, move and remove files: a seed decides who is next.

A client has one request under way; there are several clients. The seed draws when each begins, what it asks for, when time
passes, when retention, compaction and moves begin, and how fast threads are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.campaigns.power_loss import workload
from tests.campaigns.power_loss.clients import Producer, commit, consume, delete_records, plain, produce, put
from tests.campaigns.power_loss.node import SEGMENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from random import Random
    from typing import Any

    from tests.campaigns.power_loss.clients import Talk
    from tests.campaigns.power_loss.run import Run

_PARTITIONS = [("strict", 0), ("strict", 1), ("lazy", 0), ("thrifty", 0), ("timed", 0)]
_COMPACTED = "compacted", 0
_WAITS_MS = (1, 20, 100, 600)
_ROUND = 60


class _Work:
    """What one step of the workload does, drawn by ``rng``."""

    def __init__(self, run: Run, rng: Random) -> None:
        self._run = run
        self._rng = rng
        self._under_way: dict[str, Talk] = {}
        self._read: dict[tuple[str, int], int] = {}
        self._clients: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            "first": self._produce,
            "second": self._produce,
            "third": self._put,
            "idempotent": self._be_idempotent,
            "committing": lambda: self._have_a_transaction("committing"),
            "aborting": lambda: self._have_a_transaction("aborting"),
            "group": self._commit,
            "deleter": self._delete,
            "consumer": self._consume,
            "administrator": self._replace_a_topic,
        }
        self._acts: list[Callable[[], None]] = [self._drop, self._compact, self._move]

    def go(self) -> None:
        """Some clients and acts, and an end when all clients are answered."""
        for _ in range(_ROUND):
            drawn = self._rng.random()
            if drawn < 0.6:
                self._begin_client()
            elif drawn < 0.7:
                self._rng.choice(self._acts)()
            elif drawn < 0.8:
                self._run.node.wait(self._rng.choice(_WAITS_MS))
            else:
                self._run.node.turn()
        self._run.wait_for_all()

    def _begin_client(self) -> None:
        name = self._rng.choice(list(self._clients))
        talk = self._under_way.get(name)
        if talk is None or talk.is_over:
            self._under_way[name] = self._run.begin(self._clients[name]())

    def _some(self) -> list[tuple[str, int]]:
        return self._rng.sample(_PARTITIONS, self._rng.randint(1, 3))

    def _values(self) -> list[bytes]:
        return [self._run.new_value(self._rng.choice((12, 40, 150))) for _ in range(self._rng.randint(1, 3))]

    async def _produce(self) -> None:
        await produce(self._run, {name: plain(self._run, *self._values()) for name in self._some()})

    async def _put(self) -> None:
        keys = self._rng.sample((b"a", b"b", b"c", b"d"), 2)
        await put(
            self._run, _COMPACTED, {keys[0]: self._run.new_value(40), keys[1]: self._rng.choice((None, self._run.new_value()))}
        )

    async def _be_idempotent(self) -> None:
        producer = Producer(self._run)
        if await producer.begin():
            names = self._some()
            for _ in range(3):
                await producer.send({name: self._values() for name in names})

    async def _have_a_transaction(self, transactional_id: str) -> None:
        producer = Producer(self._run, transactional_id)
        if not await producer.begin():
            return
        names = self._rng.sample([*_PARTITIONS, _COMPACTED], 2)
        is_good = await producer.send({name: self._values() for name in names})
        offsets = {}
        if is_good and self._rng.random() < 0.5:
            offsets = {(transactional_id, *names[0]): self._run.values}
            is_good = await producer.commit_offsets(transactional_id, {names[0]: self._run.values})
        await producer.end(commit=is_good and transactional_id == "committing", offsets=offsets)

    async def _commit(self) -> None:
        self._run.values += 1
        await commit(self._run, "consumers", self._rng.choice(_PARTITIONS), self._run.values)

    async def _delete(self) -> None:
        name = self._rng.choice(_PARTITIONS)
        if name[0] not in self._run.topic_ids:
            return
        end = self._run.ends_of({name[0]}).get(self._run.key(name), 0)
        await delete_records(self._run, name, self._rng.randint(0, end))

    async def _consume(self) -> None:
        name = self._rng.choice(_PARTITIONS)
        for _ in range(3):
            self._read[name] = await consume(self._run, name, self._read.get(name, 0))

    async def _replace_a_topic(self) -> None:
        await self._run.delete_topic("passing")
        if await self._run.create_topic("passing", 1, flush_messages="1") is not None:
            await produce(self._run, {("passing", 0): plain(self._run, *self._values())})

    def _drop(self) -> None:
        """Retention removes all but the last bytes of a log."""
        name = self._rng.choice(_PARTITIONS)
        partition = self._run.node.broker.partitions.get(*name)
        log = None if partition is None else partition.log
        # A disk that fails keeps a topic from being created.
        if log is not None and name[0] in self._run.topic_ids:
            self._run.may_start_anywhere(name)
            kept = log.config
            log.config = replace(kept, retention_bytes=SEGMENT_BYTES, file_delete_delay_ms=50)
            self._run.node.call(self._run.node.broker.log_manager.retention.run, self._run.clock.now_ms())
            log.config = kept

    def _compact(self) -> None:
        self._run.node.call(self._run.node.broker.log_cleaner.clean_due)

    def _move(self) -> None:
        """Move a log to the other directory, if there is one."""
        broker = self._run.node.broker
        partition = broker.partitions.get(*self._rng.choice([*_PARTITIONS, _COMPACTED]))
        if partition is not None and partition.log is not None:
            home = broker.log_manager.home_of(partition.log)
            for target in broker.log_manager.directories.online:
                if target is not home:
                    self._run.node.call(broker.moves.request, partition, target)


def draw_steps(rng: Random, rounds: int) -> list[Callable[[Run], None]]:
    """Rounds of work, with starts in between."""

    def work_at_once(run: Run) -> None:
        _Work(run, rng).go()

    steps: list[Callable[[Run], None]] = [workload.create_topics, workload.create_compacted_topic]
    for number in range(rounds):
        if number:
            steps.append(rng.choice((workload.restart, workload.be_killed, workload.wait_for_checkpoints)))
        steps.append(work_at_once)
    return steps
