"""``odradek groups explain``: why the members of a group have their partitions, from the log of any broker."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import click

from odradek.cli.apis import FETCH
from odradek.cli.cluster import EARLIEST_TIMESTAMP, Cluster
from odradek.cli.described_group import DescribedGroup, describe_group
from odradek.cli.explained_group import ExplainedMove, Explanation, GroupStory
from odradek.cli.options import asks_a_broker
from odradek.cli.refusals import Refused, check, patiently
from odradek.cli.table import show_json
from odradek.coordinator.runtime.hashing import partition_for
from odradek.protocol.coordinator_records import ConsumerGroupKey, decode_group_key, decode_value
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.message_types.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, read_records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from odradek.protocol.coordinator_records import ConsumerGroupValue
    from odradek.protocol.message_types.metadata import MetadataResponseTopic
    from odradek.protocol.record_batch import Buffer

_OFFSETS_TOPIC = "__consumer_offsets"
_FETCH_BYTES = 8 << 20
_WAIT_MS = 500


@click.command()
@click.argument("group")
@asks_a_broker
@click.option("--last", type=click.IntRange(1), default=10, show_default=True, help="So many of the newest target assignments.")
def explain(group: str, bootstrap: list[tuple[str, int]], as_json: bool, last: int) -> int:
    """Why the members of a consumer group have their partitions: what changed, what moved and why, how long it was kept.

    It reads the group's records on __consumer_offsets, of odradek or of Apache Kafka. What compaction has removed is not there
    any more. Of classic groups the members decide, and their records do not say why.
    """
    with Cluster(bootstrap) as cluster:
        topics = cluster.metadata(None)
        try:
            story = patiently(lambda: _read(cluster, topics, group))
        except MalformedMessage as error:
            raise click.ClickException(f"{group}: its records cannot be read: {error}") from error
        if not story.is_there:
            click.echo(_unexplained(describe_group(cluster, group)), err=True)
            return 2
    names = {topic.topic_id: str(topic.name) for topic in topics if topic.topic_id is not None}
    documents = [_as_document(each, names) for each in story.explanations[-last:]]
    if as_json:
        show_json({"group": group, "assignments": documents})
    else:
        click.echo("\n".join(map(_as_text, documents)))
    return 0


def _unexplained(group: DescribedGroup) -> str:
    """The reason why a group that exists has no target assignment in the log."""
    if group.group_type != "classic":
        return f"{group.group} has no target assignment in {_OFFSETS_TOPIC} yet: try again"
    if not group.protocol_type:
        return f"{group.group} has committed offsets only: no member has joined it, so nothing was assigned"
    return f"{group.group} is a classic group: its members assign the partitions themselves, and no record says why"


def _read(cluster: Cluster, topics: list[MetadataResponseTopic], group: str) -> GroupStory:
    """The group's story. Raises Refused, MalformedMessage."""
    count = next((len(topic.partitions) for topic in topics if topic.name == _OFFSETS_TOPIC), 0)
    if not count:
        raise Refused(group, ErrorCode.GROUP_ID_NOT_FOUND)
    story = GroupStory({str(topic.name): topic.topic_id for topic in topics if topic.topic_id is not None})
    for record in _records(cluster, partition_for(group, count)):
        key = decode_group_key(record.key or b"")
        if isinstance(key, ConsumerGroupKey) and key.group == group:
            story.take(key, cast("ConsumerGroupValue | None", decode_value(key, record.value)), record.timestamp)
    return story


def _records(cluster: Cluster, partition: int) -> Iterator[Record]:
    """All records of a partition of ``__consumer_offsets``, those of transactions aside. Raises Refused."""
    place = _OFFSETS_TOPIC, partition
    found = cluster.list_offsets({place: EARLIEST_TIMESTAMP})[place]
    if isinstance(found, Refused):
        raise found
    connection = cluster.node(cluster.leaders([_OFFSETS_TOPIC])[place])
    offset, end = found, found + 1
    while offset < end:
        asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES)
        request = FetchRequest(
            max_wait_ms=_WAIT_MS,
            min_bytes=0,
            max_bytes=_FETCH_BYTES,
            topics=[FetchTopic(topic=_OFFSETS_TOPIC, partitions=[asked])],
        )
        [data] = connection.call(FETCH, request).responses[0].partitions
        check(f"{_OFFSETS_TOPIC}-{partition}", data.error_code)
        end = data.high_watermark
        records = bytes(cast("Buffer", data.records or b""))
        start = offset
        for position, header in iter_batches(records):
            if not header.is_control and not header.is_transactional:
                yield from (record for record in read_records(records, position) if record.offset >= start)
            offset = header.next_offset
        if offset == start:
            break


def _as_document(explanation: Explanation, names: dict[UUID, str]) -> dict[str, Any]:
    moves = explanation.moves
    return {
        "epoch": explanation.epoch,
        "time": datetime.fromtimestamp(explanation.at_ms / 1000, UTC).isoformat(timespec="milliseconds"),
        "changes": explanation.changes,
        "moves": None if moves is None else [_move(each, names) for each in moves],
    }


def _move(each: ExplainedMove, names: dict[UUID, str]) -> dict[str, Any]:
    move = each.move
    return {
        "topic": names.get(move.topic_id, str(move.topic_id)),
        "partition": move.partition,
        "from": move.source,
        "to": move.target,
        "reason": move.reason.value,
        "kept_ms": each.kept_ms,
    }


def _as_text(document: dict[str, Any]) -> str:
    changes = "; ".join(document["changes"]) or "the log does not say why"
    lines = [f"epoch {document['epoch']}, {document['time']}: {changes}"]
    if document["moves"] is None:
        lines.append("  what was before is not in the log any more")
    elif not document["moves"]:
        lines.append("  nothing moves")
    for move in document["moves"] or ():
        kept = "" if move["kept_ms"] is None else f", given up after {move['kept_ms']} ms"
        where = f"{move['topic']}-{move['partition']} from {move['from'] or 'nobody'} to {move['to'] or 'nobody'}"
        lines.append(f"  {where}: {move['reason']}{kept}")
    return "\n".join(lines)
