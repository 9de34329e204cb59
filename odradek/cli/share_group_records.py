"""``odradek groups records``: the states of a share group's records, from the log of any broker.

The share coordinator writes each end of a delivery to ``__share_group_state``. The command merges these records as it does
(``coordinator.share.batches``). Acquiring is not written: only the leader of a partition knows the holders of its records. A
record that is held for the first time has no stored state. One that is held again is stored as AVAILABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from odradek.broker.share.in_flight import RecordState
from odradek.cli.cluster import Cluster, Refused, patiently
from odradek.cli.described_group import SHARE, describe_group
from odradek.cli.internal_topic import read_partition
from odradek.cli.options import Servers, asks_a_broker, row_of, show
from odradek.coordinator.share.batches import combined, updated
from odradek.coordinator.share.state import SharePartitionKey
from odradek.protocol.coordinator_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    decode_share_state_key,
    decode_value,
)
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.hashing import partition_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.client.known_cluster import Partition
    from odradek.protocol.records import Record

_STATE_TOPIC = "__share_group_state"
_ROW = ("topic", "partition", "first_offset", "last_offset", "state", "delivery_count")


@click.command()
@click.argument("group")
@asks_a_broker
def records(group: str, bootstrap: Servers, as_json: bool) -> int:
    """Show which records of a share group are acknowledged, archived or released, and how often they were delivered.

    It reads the group's records on __share_group_state, of odradek or of Apache Kafka. Records before the start offset are
    done and not listed. The log does not have the records that members hold now: they are shown as they were released, or
    not at all.
    """
    with Cluster(bootstrap) as cluster:
        described = describe_group(cluster, group)
        if described.group_type != SHARE:
            raise click.ClickException(f"{group} is a {described.group_type} group: only share groups keep the state of records")
        try:
            states = patiently(lambda: _read(cluster, group, described.offsets))
        except MalformedMessage as error:
            raise click.ClickException(f"cannot read the records of group {group}: {error}") from error
    show(_ROW, _rows(states), as_json=as_json)
    return 0


def _read(cluster: Cluster, group: str, partitions: Iterable[Partition]) -> dict[Partition, ShareSnapshotValue]:
    """Return the stored state of each partition. Raises Refused, MalformedMessage."""
    topics = cluster.metadata(None)
    count = next((len(topic.partitions) for topic in topics if topic.name == _STATE_TOPIC), 0)
    ids = {str(topic.name): topic.topic_id for topic in topics if topic.topic_id is not None}
    by_key = {SharePartitionKey(group, ids[topic], index): (topic, index) for topic, index in partitions if topic in ids}
    if by_key and not count:
        raise Refused(_STATE_TOPIC, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    states: dict[SharePartitionKey, ShareSnapshotValue] = {}
    for log in sorted({partition_for(key.coordinator_key, count) for key in by_key}):
        for record in read_partition(cluster, (_STATE_TOPIC, log)):
            _replay(states, record)
    return {by_key[key]: state for key, state in states.items() if key in by_key}


def _replay(states: dict[SharePartitionKey, ShareSnapshotValue], record: Record) -> None:
    key = decode_share_state_key(record.key or b"")
    if not isinstance(key, ShareSnapshotKey | ShareUpdateKey):
        return
    place, value = SharePartitionKey(*key), decode_value(key, record.value)
    if isinstance(value, ShareSnapshotValue):
        states[place] = combined(value)
    elif isinstance(value, ShareUpdateValue):
        states[place] = updated(states.get(place), value)
    else:
        states.pop(place, None)


def _rows(states: Mapping[Partition, ShareSnapshotValue]) -> list[dict[str, Any]]:
    return [
        row_of(
            _ROW, *partition, batch.first_offset, batch.last_offset, RecordState(batch.delivery_state).name, batch.delivery_count
        )
        for partition, state in sorted(states.items())
        for batch in state.state_batches
    ]
