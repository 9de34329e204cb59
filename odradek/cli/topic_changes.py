"""``odradek topics alter`` and ``odradek topics delete-records``."""

from collections.abc import Iterable
from typing import Final

import click

from odradek.cli.cluster import Cluster, Refused, Unreachable, check, known_topics
from odradek.cli.configs import TOPIC, alter_configs, changes_of
from odradek.cli.consume_from import Start, parse_start
from odradek.cli.options import Servers, asks_a_broker, exit_status, key_and_value, row_of, show
from odradek.client.admin_apis import CREATE_PARTITIONS, DELETE_RECORDS
from odradek.client.apis import LATEST_TIMESTAMP
from odradek.client.known_cluster import Partition
from odradek.protocol.message_types.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.message_types.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.timing.system_clock import SystemClock

_TIMEOUT_MS: Final = 30_000
_ALTERED: Final = ("topic", "partitions", "configs")
_DELETED: Final = ("topic", "partition", "log_start_offset")


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@asks_a_broker
@click.option("--partitions", type=click.IntRange(1), help="Add partitions, up to this number.")
@click.option("--config", "settings", metavar="KEY=VALUE", multiple=True, callback=key_and_value, help="Repeatable.")
@click.option("--remove-config", "removed", metavar="KEY", multiple=True, help="Back to the default; repeatable.")
def alter(
    names: tuple[str, ...],
    bootstrap: Servers,
    as_json: bool,
    partitions: int | None,
    settings: dict[str, str],
    removed: tuple[str, ...],
) -> int:
    """Add partitions to topics, or change their configs.

    A key's later records may go to another partition once there are more of them.
    """
    changes = changes_of(settings, removed)
    if partitions is None and not changes:
        raise click.UsageError("there is nothing to change: give --partitions, --config or --remove-config")
    altered: list[dict[str, object]] = []
    failures: list[Refused | Unreachable] = []
    with Cluster(bootstrap) as cluster:
        found, refusals = known_topics(cluster, names)
        failures += refusals
        for topic in found:
            name, count = str(topic.name), len(topic.partitions)
            try:
                if changes:
                    alter_configs(cluster, TOPIC, name, changes)
                if partitions is not None and partitions != count:
                    _add_partitions(cluster, name, partitions)
            except (Refused, Unreachable) as failure:
                failures.append(failure)
            else:
                altered.append(row_of(_ALTERED, name, partitions or count, [one.name for one in changes]))
    if altered or as_json:
        show(_ALTERED, altered, as_json=as_json)
    return exit_status(failures)


@click.command("delete-records")
@click.argument("topic")
@asks_a_broker
@click.option(
    "--before",
    required=True,
    metavar="WHERE",
    callback=parse_start,
    help="end, an offset, -N to keep the last N of each partition, a time (ISO 8601), or an age such as 7d.",
)
@click.option("--partition", "partitions", type=click.IntRange(0), multiple=True, help="Repeatable.  [default: all]")
def delete_records(topic: str, bootstrap: Servers, as_json: bool, before: Start, partitions: tuple[int, ...]) -> int:
    """Delete a topic's records before an offset or a time. There is no way back."""
    rows: list[dict[str, object]] = []
    failures: list[Refused | Unreachable] = []
    with Cluster(bootstrap) as cluster:
        found, refusals = known_topics(cluster, (topic,))
        if refusals:
            return exit_status(refusals)
        known = [int(partition.partition_index) for partition in found[0].partitions]
        wanted = [(topic, index) for index in partitions or sorted(known)]
        offsets = _offsets(cluster, wanted, before)
        failures += [offset for offset in offsets.values() if isinstance(offset, Refused)]
        by_leader: dict[int, dict[int, int]] = {}
        leaders = cluster.leaders([topic])
        for partition, offset in offsets.items():
            if not isinstance(offset, Refused):
                by_leader.setdefault(leaders.get(partition, -1), {})[partition[1]] = offset
        for leader, those in by_leader.items():
            try:
                rows += _delete(cluster, leader, topic, those, failures)
            except Unreachable as failure:
                failures.append(failure)
    if rows or as_json:
        show(_DELETED, sorted(rows, key=lambda row: str(row["partition"])), as_json=as_json)
    return exit_status(failures)


def _add_partitions(cluster: Cluster, name: str, count: int) -> None:
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS)
    [answer] = cluster.controller().call(CREATE_PARTITIONS, request).results
    check(name, answer.error_code, answer.error_message)


def _offsets(cluster: Cluster, partitions: Iterable[Partition], before: Start) -> dict[Partition, int | Refused]:
    """Return the offset before which each partition's records go; -1 for all of them."""
    partitions = list(partitions)
    if before.offset is not None and before.offset >= 0:
        return dict.fromkeys(partitions, before.offset)
    timestamp_ms = LATEST_TIMESTAMP if before.offset is not None else before.timestamp_ms
    if timestamp_ms is None:
        timestamp_ms = max(0, SystemClock().now_ms() - (before.age_ms or 0))
    found = cluster.list_offsets(dict.fromkeys(partitions, timestamp_ms))
    if before.offset is None:
        # Without a later record, all records go.
        return found
    return {key: one if isinstance(one, Refused) else max(0, one + before.offset) for key, one in found.items()}


def _delete(
    cluster: Cluster, leader: int, topic: str, offsets: dict[int, int], failures: list[Refused | Unreachable]
) -> list[dict[str, object]]:
    asked = [DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in offsets.items()]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=asked)], timeout_ms=_TIMEOUT_MS)
    rows: list[dict[str, object]] = []
    for answered in cluster.node(leader).call(DELETE_RECORDS, request).topics:
        for result in answered.partitions:
            index = int(result.partition_index)
            if result.error_code:
                failures.append(Refused(f"{topic}-{index}", result.error_code))
            else:
                rows.append(row_of(_DELETED, topic, index, result.low_watermark))
    return rows
