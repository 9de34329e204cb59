"""Read a partition of an internal topic of any broker: the log of a coordinator."""

from collections.abc import Iterator
from typing import cast

from odradek.cli.cluster import Cluster, Refused, check
from odradek.client.apis import EARLIEST_TIMESTAMP, FETCH
from odradek.client.known_cluster import Partition
from odradek.protocol.message_types.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.record_batch import Buffer, iter_batches
from odradek.protocol.records import Record, read_records

_FETCH_BYTES = 8 << 20
_WAIT_MS = 500


def read_partition(cluster: Cluster, partition: Partition) -> Iterator[Record]:
    """Yield the records of a partition, without those of transactions. Raises Refused."""
    topic, index = partition
    found = cluster.list_offsets({partition: EARLIEST_TIMESTAMP})[partition]
    if isinstance(found, Refused):
        raise found
    connection = cluster.node(cluster.leaders([topic])[partition])
    offset, end = found, found + 1
    while offset < end:
        asked = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES)
        request = FetchRequest(
            max_wait_ms=_WAIT_MS,
            min_bytes=0,
            max_bytes=_FETCH_BYTES,
            topics=[FetchTopic(topic=topic, partitions=[asked])],
        )
        [data] = connection.call(FETCH, request).responses[0].partitions
        check(f"{topic}-{index}", data.error_code)
        end = data.high_watermark
        records = bytes(cast("Buffer", data.records or b""))
        start = offset
        for position, header in iter_batches(records):
            if not header.is_control and not header.is_transactional:
                yield from (record for record in read_records(records, position) if record.offset >= start)
            offset = header.next_offset
        if offset == start:
            break
