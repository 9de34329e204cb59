"""One point in one scenario: the broker is killed there, restarted, and checked.

fate       all of the transaction is readable or none, on every partition, and the group's offset with it: all, if EndTxn was
           answered, or if Prepare* is on disk, even without a client's return; none, if it is not and a new instance takes over
goes on    the unanswered producer retries and ends its transaction as intended, or is fenced next       after a takeover the
transactional id commits another transaction hangs      no transaction is open, and the last stable offset is the high watermark
on every partition lost       every acknowledged record is at its acknowledged offset; no producer id is assigned twice
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker_process import BrokerProcess
from tests.campaigns.crash.points.broker import DyingBroker
from tests.campaigns.crash.points.epochs import use_up_epochs
from tests.campaigns.crash.points.producer import TV1, TV2, Kind, Partition, Producer, Refused
from tests.campaigns.crash.points.scenario import (
    AFTER_THE_END,
    CREDIT,
    DEBIT,
    GROUP,
    GROUP_PARTITION,
    NEW_TRANSACTIONAL_ID,
    PARTITIONS,
    SETTINGS,
    TRANSACTIONAL_ID,
    Ending,
    Scenario,
    Transaction,
    steps_of,
    values_of,
)
from tests.campaigns.crash.points.seen import (
    COMMITTED,
    DECIDED,
    committed_offset,
    ensure_nothing_hangs,
    read_by_client,
    state_on_disk,
    wait_until_settled,
    wait_until_stable,
)
from tests.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.campaigns.crash.points.points import CrashPoint

PLAIN = b"plain"
# Transactions and the offset that each of them commits; the broker dies in "fate".
KEPT, DROPPED, FATE, NEXT, LAST = "kept", "dropped", "fate", "next", "last"
OFFSETS = {KEPT: 10, DROPPED: 20, FATE: 30, NEXT: 40, LAST: 50}
_FENCED = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
}


def make_templates(directory: Path) -> dict[Kind | None, Path]:
    """A data directory used by each kind of client, and one without any transaction."""
    return {kind: _make_template(directory / (kind.name if kind else "none"), kind) for kind in (None, TV1, TV2)}


def _make_template(data_dir: Path, kind: Kind | None) -> Path:
    """Records, and a committed and an aborted transaction of a client. TV1's broker stops gracefully, TV2's is killed."""
    broker = BrokerProcess(data_dir, settings=SETTINGS).start()
    with RawClient(broker.host, broker.port) as client:
        keep = {"name": "retention.ms", "value": "-1"}
        topics = [
            {
                "name": DEBIT,
                "num_partitions": 2,
                "replication_factor": 1,
                "configs": [keep, {"name": "segment.ms", "value": "1"}],
            },
            {"name": CREDIT, "num_partitions": 2, "replication_factor": 1, "configs": [keep]},
        ]
        created = client.call(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=5000).topics
        assert [topic.error_code for topic in created] == [ErrorCode.NONE] * 2
        for topic, index in PARTITIONS:
            assert client.produce(topic, PLAIN, partition=index).error_code == ErrorCode.NONE
        if kind is not None:
            producer = Producer(TRANSACTIONAL_ID, kind)
            producer.connect(client)
            producer.init()
            _transact(producer, KEPT, is_commit=True)
            _transact(producer, DROPPED, is_commit=False)
            # A kill may come between an answer and its markers, which the next start would write, and come to the points in them.
            wait_until_settled(client)
    if kind is TV2:
        broker.kill9()
    else:
        broker.stop()
    return data_dir


def _transact(producer: Producer, tag: str, *, is_commit: bool) -> None:
    transaction = Transaction(producer, tag, OFFSETS[tag])
    transaction.run([*transaction.write(), transaction.end(is_commit=is_commit)])


@dataclass
class Outcome:
    """The observations of a point in a scenario. ``error`` is the check that failed, ``log`` the broker's log."""

    point: CrashPoint
    scenario: Scenario
    unanswered: str = "nothing"
    seen: list[str] = field(default_factory=list)
    error: str = ""
    log: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        killed = ", then ".join(str(place) for place in self.point.places)
        seen = f"FAILED: {self.error}" if self.error else ", ".join(self.seen)
        return (
            f"{self.point.name} ({self.scenario}): {self.point.what} | killed {killed}, {self.unanswered} not answered"
            f" | {seen} | {self.seconds:.2f} s"
        )


def run_point(point: CrashPoint, scenario: Scenario, templates: Mapping[Kind | None, Path], directory: Path) -> Outcome:
    """Run a point in a scenario, on a copy of one of ``templates`` in ``directory``."""
    outcome = Outcome(point, scenario)
    broker = DyingBroker(directory / "data", settings=SETTINGS)
    started_s = time.monotonic()
    try:
        with ExitStack() as stack:
            stack.push(broker)
            shutil.copytree(templates[None if point.is_first else scenario.kind], broker.data_dir)
            if point.is_exhausted:
                use_up_epochs(broker.data_dir, TRANSACTIONAL_ID, scenario.kind)
            _Run(outcome, broker).run()
    except (AssertionError, OSError, Refused) as error:
        outcome.error = f"{type(error).__name__}: {error}"
        outcome.log = broker.stderr
    outcome.seconds = time.monotonic() - started_s
    return outcome


class _Run:
    """The steps of one run."""

    def __init__(self, outcome: Outcome, broker: DyingBroker) -> None:
        self._outcome = outcome
        self._point = outcome.point
        self._scenario = outcome.scenario
        self._broker = broker
        producer = Producer(NEW_TRANSACTIONAL_ID if self._point.is_new else TRANSACTIONAL_ID, self._scenario.kind)
        self._transaction = Transaction(producer, FATE, OFFSETS[FATE])
        # All instances of the transactional id, the present one last.
        self._instances = [producer]

    def run(self) -> None:
        transactional_id = self._instances[0].transactional_id
        before = state_on_disk(self._broker.data_dir, transactional_id)
        self._until_killed()
        value = state_on_disk(self._broker.data_dir, transactional_id)
        is_decided = value is not None and value != before and value.status in DECIDED
        is_committed = value is not None and value != before and value.status in COMMITTED
        if self._transaction.step == AFTER_THE_END and self._scenario.ending is Ending.COMMIT:
            assert is_committed, "the commit was acknowledged, and is not on disk"
        self._broker.start()
        with RawClient(self._broker.host, self._broker.port) as client:
            self._instances[0].connect(client)
            # There are offsets to look at, though none was committed yet.
            client.call(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=[GROUP])
            if is_decided or self._scenario.ending is Ending.TIMEOUT:
                # The broker settles transactions without a client's return.
                wait_until_settled(client)
                wait_until_stable(client)
            is_visible = self._resolve(is_committed=is_committed)
            tags = [] if self._point.is_first else [KEPT]
            tags += [FATE] if is_visible else []
            self._check(client, tags)
            self._outcome.seen += ["all of it is read" if is_visible else "nothing of it is read", f"offset {_offset(tags)}"]
            tags += self._transact_more()
            self._check(client, tags)
            ensure_nothing_hangs(client)
            self._check_producer_ids(client)
        shown = read_by_client(self._broker.address)
        assert shown == expected(tags), f"a reader of committed records is shown {shown}"
        self._outcome.seen.append("nothing hangs or is lost")

    def _until_killed(self) -> None:
        """All steps from the first request to the last kill."""
        broker, transaction = self._broker, self._transaction
        broker.arm(self._point, 0)
        broker.start()
        with RawClient(broker.host, broker.port) as client, suppress(OSError):
            self._instances[0].connect(client)
            try:
                transaction.run(steps_of(self._scenario, transaction, self._interrupt))
                raise AssertionError(f"all was answered, and the broker did not come to {self._point.places[0]}")
            except Refused:
                # On a slow machine the timeout passes before all requests are sent.
                if self._scenario.ending is not Ending.TIMEOUT:
                    raise
        broker.ensure_killed(self._point, 0)
        for number in range(1, len(self._point.places)):
            broker.arm(self._point, number)
            broker.spawn()
            broker.ensure_killed(self._point, number)
        broker.disarm()
        self._outcome.unanswered = transaction.step

    def _interrupt(self) -> None:
        if self._scenario.ending is Ending.STOP:
            os.kill(self._broker.pid, signal.SIGTERM)
        raise ConnectionAbortedError

    def _resolve(self, *, is_committed: bool) -> bool:
        """Bring the transaction to its end; returns whether it must be readable."""
        producer = self._instances[0]
        ending = self._scenario.ending
        if self._scenario.goes_on and ending is not Ending.TIMEOUT:
            self._transaction.run(steps_of(self._scenario, self._transaction, lambda: None))
            return ending in (Ending.COMMIT, Ending.STOP)
        if ending is not Ending.TIMEOUT:
            self._take_over()
        if producer.producer_id >= 0:
            _ensure_fenced(producer)
        return is_committed

    def _take_over(self) -> None:
        started_s = time.monotonic()
        self._instances.append(self._instances[-1].successor())
        self._instances[-1].init()
        self._outcome.seen.append(f"taken over in {(time.monotonic() - started_s) * 1000:.0f} ms")

    def _transact_more(self) -> list[str]:
        """Commit more transactions, of the same instance or of the one that took over; returns their names."""
        tags = [LAST]
        if len(self._instances) == 1:
            if self._scenario.ending is not Ending.TIMEOUT:
                _transact(self._instances[0], NEXT, is_commit=True)
                tags = [NEXT, LAST]
            self._take_over()
        started_s = time.monotonic()
        _transact(self._instances[-1], LAST, is_commit=True)
        self._outcome.seen.append(f"next transaction in {(time.monotonic() - started_s) * 1000:.0f} ms")
        return tags

    def _check(self, client: RawClient, tags: list[str]) -> None:
        """Exactly these transactions are readable, and no acknowledged record is lost."""
        seen = wait_until_stable(client)
        for partition, values in expected(tags).items():
            assert seen[partition].committed == values, f"{partition} shows {seen[partition].committed}, not {values}"
        for partition, found in seen.items():
            assert found.aborted == found.aborted_by_markers, f"{partition}: Fetch tells {found.aborted} as aborted"
        for producer in self._instances:
            for partition, base_offset, values in producer.appended:
                records = seen[partition].records
                found_values = tuple(records[base_offset + number].value for number in range(len(values)))
                assert found_values == values, f"{partition}: {found_values} where {values} were acknowledged"
        offset = committed_offset(client, GROUP, GROUP_PARTITION)
        assert offset == _offset(tags), f"the group's offset is {offset}, not {_offset(tags)}"

    def _check_producer_ids(self, client: RawClient) -> None:
        answer = client.call(ApiKey.INIT_PRODUCER_ID, 5, transactional_id=None, transaction_timeout_ms=1)
        given = {producer.producer_id for producer in self._instances}
        assert answer.producer_id > max(given), f"producer id {answer.producer_id} after {given}"


def _offset(tags: list[str]) -> int:
    """The offset committed by the last of these; -1 if there are none."""
    return OFFSETS[tags[-1]] if tags else -1


def _ensure_fenced(producer: Producer) -> None:
    """An instance that was away for too long, or that has a successor, cannot commit."""
    code = None
    try:
        producer.end(is_commit=True)
    except Refused as refused:
        code = refused.code
    assert code in _FENCED, f"a producer that should be fenced is told {code}"


def expected(tags: list[str]) -> dict[Partition, list[bytes]]:
    """The values that a read_committed consumer finds if these transactions are committed."""
    return {partition: [PLAIN, *(value for tag in tags for value in values_of(tag)[partition])] for partition in PARTITIONS}
