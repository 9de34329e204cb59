"""The records that a share group has in flight at a broker: their states, their holders and the locks of these.

They are the records between the start offset and the end offset of a share partition. Only the leader of a partition knows them:
no request of Kafka's tells them. Left out: records that were never delivered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.broker.share.in_flight import InFlightState
    from odradek.broker.share.share_partition import SharePartition
    from odradek.broker.start.server import Broker as BrokerCore

__tracebackhide__ = True

# The name of the state: importing RecordState would cost each page some milliseconds of its start.
_ACQUIRED = "ACQUIRED"


@dataclass(frozen=True, slots=True)
class InFlightRecords:
    """Consecutive records of a partition, in one state. Kafka's name is InFlightState.

    ``state`` is AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING or ARCHIVED. ACQUIRED records have a holder, ``member_id``. Its
    ``client_id`` is None once it has left the group. ``lock_left_ms`` is the time that its acquisition lock still lasts, by the
    broker's clock. ``delivery_count`` includes the present delivery.
    """

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    state: str
    delivery_count: int
    member_id: str | None = None
    client_id: str | None = None
    lock_left_ms: int | None = None

    def __str__(self) -> str:
        offsets = f"{self.first_offset}" if self.first_offset == self.last_offset else f"{self.first_offset}-{self.last_offset}"
        holder = "" if self.member_id is None else f" by {self.member_id} for {self.lock_left_ms} ms"
        return f"{self.topic}-{self.partition} {offsets} {self.state}{holder}, delivery {self.delivery_count}"


def records_in_flight(core: BrokerCore, group_id: str, client_ids: Mapping[str, str]) -> Iterator[InFlightRecords]:
    """Yield a share group's records in flight at this broker. ``client_ids`` are those of its members, by member id."""
    now_ms = core.clock.monotonic_ms()
    shares = core.share_partitions_so_far
    found = () if shares is None else shares.of_group(group_id)
    for shared in sorted(found, key=lambda shared: (shared.partition.topic, shared.key.partition)):
        for run in shared.window.runs():
            if _is_in_flight(shared, run):
                yield _records(shared, run, client_ids, now_ms)


def acknowledged_records(core: BrokerCore, group_id: str) -> int:
    """Return the number of records that a share group's members have accepted since the broker last started."""
    shares = core.share_partitions_so_far
    return 0 if shares is None else shares.accepted_records(group_id)


def _is_in_flight(shared: SharePartition, run: InFlightState) -> bool:
    # A member may still hold records that the log has lost meanwhile.
    return run.last_offset >= shared.window.start_offset or run.state.name == _ACQUIRED


def _records(shared: SharePartition, run: InFlightState, client_ids: Mapping[str, str], now_ms: float) -> InFlightRecords:
    topic, partition = shared.partition.topic, shared.key.partition
    if run.state.name == _ACQUIRED:
        return InFlightRecords(
            topic,
            partition,
            run.first_offset,
            run.last_offset,
            run.state.name,
            run.delivery_count,
            run.member_id,
            client_ids.get(run.member_id),
            max(0, round(run.lock_deadline_ms - now_ms)),
        )
    first_offset = max(run.first_offset, shared.window.start_offset)
    return InFlightRecords(topic, partition, first_offset, run.last_offset, run.state.name, run.delivery_count)
