"""Either engine on one directory: odradek and Apache Kafka in turn, stopped or killed, under clients that stay.

At each start all that was there when the other engine ended is asked for again (``inventory``), what was begun is gone on with
(``kept``, ``consumer_groups``), and Kafka is asked for what odradek does not serve (``kafkas_own``).
"""

import signal
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.campaigns.cluster_chaos.clients import Violation
from tests.campaigns.growing_out import consumer_groups
from tests.campaigns.growing_out.consumer_groups import ConsumerGroupsKept
from tests.campaigns.growing_out.engines import KAFKA, ODRADEK, ODRADEK_ON_KAFKAS_FILE, OneDirectory
from tests.campaigns.growing_out.inventory import KEPT, Inventory, differences, settled, take_inventory
from tests.campaigns.growing_out.kafkas_own import KAFKA_SETTINGS, kafkas_own, leave_what_only_kafka_has
from tests.campaigns.growing_out.kept import Kept, described_quotas, leave_quotas
from tests.campaigns.growing_out.live import LiveClients
from tests.campaigns.growing_out.taken_over import leave_a_consumer_group, look_at_it, take_over
from tests.raw_client import RawClient

STOP, KILL = signal.SIGTERM, signal.SIGKILL
# Each engine comes after each end of the other one.
RUNS = (
    *((ODRADEK, STOP), (KAFKA, KILL), (ODRADEK, KILL), (KAFKA, STOP), (ODRADEK_ON_KAFKAS_FILE, KILL)),
    *((KAFKA, KILL), (ODRADEK_ON_KAFKAS_FILE, STOP), (KAFKA, STOP)),
)
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    # Snapshots all the time: each engine starts from the other's.
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "metadata.max.retention.bytes": "1",
    "log.retention.check.interval.ms": "300000",
    **consumer_groups.SETTINGS,
}


class Run(NamedTuple):
    """An engine, and the signal that ends it."""

    engine: str
    end: signal.Signals


@dataclass(slots=True)
class OneDirectoryFound:
    """``things`` were there again at a start, ``checks`` were requests of producers and members that went on."""

    runs: Counter[str] = field(default_factory=Counter)
    things: int = 0
    checks: int = 0
    live: str = ""
    differences: list[str] = field(default_factory=list)

    def report(self) -> str:
        """One line."""
        runs = ", ".join(f"{count} {what}" for what, count in sorted(self.runs.items()))
        return f"one directory: {runs}; {self.things} things found again, {self.checks} requests that went on; {self.live}"


def take_turns(
    scratch: Path, runs: Sequence[Run], *, plant: Callable[[Path], object] | None = None, patience_s: float = 90
) -> OneDirectoryFound:
    """Run one engine after the other on one directory. The last one is stopped after its clients.

    ``plant`` does harm to the directory behind each run, ``patience_s`` is how long a broker has for what clients wait for.
    """
    turns = _Turns(scratch, patience_s)
    try:
        for number, run in enumerate(runs):
            turns.take(run, is_last=number == len(runs) - 1)
            if plant is not None:
                plant(turns.place.data)
    finally:
        turns.place.close()
    if "Traceback" in turns.place.log:
        turns.found.differences.append(f"odradek has had a fault:\n{turns.place.log[-3000:]}")
    return turns.found


class _Turns:
    def __init__(self, scratch: Path, patience_s: float) -> None:
        self.found = OneDirectoryFound()
        self.place = OneDirectory(scratch, SETTINGS, {**KAFKA_SETTINGS, **consumer_groups.OF_KAFKA})
        self._patience_s = patience_s
        self._kept = Kept()
        self._consumer_groups = ConsumerGroupsKept(f"{KEPT}-0")
        self._live: LiveClients | None = None
        self._inventory: Inventory = {}
        self._kafkas_own: Inventory = {}
        self._next_of_group: list[Callable[[RawClient, str], list[str]]] = []

    def take(self, run: Run, *, is_last: bool) -> None:
        found = self.found
        found.runs[f"{run.engine} {'stopped' if run.end == STOP else 'killed'}"] += 1
        self.place.start(run.engine)
        if self._live is None:
            self._live = LiveClients(self.place.address, replicas=1, patience_s=self._patience_s)
        with RawClient("127.0.0.1", self.place.port) as client:
            self._look(client, run)
            self._kept.go_on(client)
            self._kept.leave(client)
            if self._inventory:
                self._consumer_groups.go_on(client)
            else:
                self._consumer_groups.leave(client)
            leave_quotas(client, found.runs.total())
            self._change_protocols(client, run.engine)
            try:
                self._live.go_on()
            except Violation as violation:
                found.differences.append(str(violation))
            self._inventory = self._take(client)
            self._kafkas_own = kafkas_own(client) if run.engine == KAFKA else self._kafkas_own
        if is_last:
            found.differences += self._live.finish()
        self.place.end(run.end)
        found.checks = self._kept.checks + self._consumer_groups.checks
        found.live = self._live.report()
        for kept in (self._kept, self._consumer_groups):
            found.differences += kept.differences
            kept.differences.clear()

    def _change_protocols(self, client: RawClient, engine: str) -> None:
        """Make what only Kafka has in its first run; take over a group of its protocol in the next of odradek's."""
        topic = f"{KEPT}-0"
        if engine == KAFKA and not self._kafkas_own:
            leave_what_only_kafka_has(client, topic)
            leave_a_consumer_group(client, topic)
            self._next_of_group = [take_over, look_at_it]
        elif self._next_of_group and (engine == KAFKA) == (self._next_of_group[0] is look_at_it):
            self.found.differences += self._next_of_group.pop(0)(client, topic)

    def _take(self, client: RawClient, wanted: Inventory | None = None) -> Inventory:
        def take() -> Inventory:
            return take_inventory(client) | consumer_groups.described(client) | described_quotas(client)

        return settled(take, wanted, self._patience_s / 3)

    def _look(self, client: RawClient, run: Run) -> None:
        """Whether all is there that was there when the former engine ended."""
        pairs = []
        if self._inventory:
            pairs.append((self._inventory, self._take(client, self._inventory)))
        if run.engine == KAFKA and self._kafkas_own:
            pairs.append((self._kafkas_own, settled(lambda: kafkas_own(client), self._kafkas_own, self._patience_s / 3)))
        for before, after in pairs:
            self.found.things += len(before)
            self.found.differences += [f"{run.engine}: {line}" for line in differences(before, after)]
