"""``odradek transactions abort`` and ``force-terminate``: end transactions that nobody else ends.

``abort`` writes a marker to one partition, past the coordinator; it is for a transaction that no coordinator knows.
``force-terminate`` fences the producer of a transactional id, so that the coordinator aborts the transaction everywhere.
"""

from typing import Any

import click

from odradek.cli.apis import INIT_PRODUCER_ID, WRITE_TXN_MARKERS
from odradek.cli.cluster import TRANSACTIONAL_ID, Cluster
from odradek.cli.open_transactions import describe_producers, describe_transaction, partitions_of
from odradek.cli.options import asks_a_broker, names_a_partition
from odradek.cli.refusals import Refused, check, patiently
from odradek.cli.table import show
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.message_types.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

Servers = list[tuple[str, int]]

_ABORTED = ("topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch")
# This producer never writes, and the next one sets its own timeout.
_TERMINATION_TIMEOUT_MS = 60_000


@click.command()
@asks_a_broker
@names_a_partition
@click.option("--start-offset", type=click.IntRange(0), help="Where the transaction begins, as find-hanging tells it.")
@click.option("--producer-id", type=click.IntRange(0), help="In place of the offset, for brokers older than 3.0.")
@click.option("--producer-epoch", type=click.IntRange(0), help="With --producer-id.")
@click.option("--coordinator-epoch", type=click.IntRange(-1), help="With --producer-id.")
def abort(
    bootstrap: Servers,
    as_json: bool,
    topic: str,
    partition: int,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
) -> int:
    """Abort a hanging transaction on one partition, by writing the marker that nobody else will write."""
    producer = (producer_id, producer_epoch, coordinator_epoch)
    named = [each for each in producer if each is not None]
    if (start_offset is None) == (not named):
        raise click.UsageError("either --start-offset or --producer-id, --producer-epoch and --coordinator-epoch are needed")
    if named and len(named) < len(producer):
        raise click.UsageError("--producer-id, --producer-epoch and --coordinator-epoch belong together")
    with Cluster(bootstrap) as cluster:
        if start_offset is not None:
            named = _starting_at(cluster, topic, partition, start_offset)
        # Before its first marker a producer has coordinator epoch -1; 0 is not above that of any coordinator.
        named[2] = max(named[2], 0)
        row = dict(zip(_ABORTED, (topic, partition, *named), strict=True))
        _write_abort(cluster, row)
    show(_ABORTED, [row], as_json=as_json)
    return 0


@click.command("force-terminate")
@click.argument("name", metavar="TRANSACTIONAL-ID")
@asks_a_broker
def force_terminate(name: str, bootstrap: Servers, as_json: bool) -> int:
    """Fence the producer of a transactional id, and abort the transaction that it has open.

    For one that has no timeout, and whose manager is not going to end it (KIP-939).
    """
    with Cluster(bootstrap) as cluster:
        describe_transaction(cluster, name)
        fenced = patiently(lambda: _fence(cluster, name))
    row = {"transactional_id": name, "producer_id": int(fenced.producer_id), "producer_epoch": fenced.producer_epoch}
    show(tuple(row), [row], as_json=as_json)
    return 0


def _starting_at(cluster: Cluster, topic: str, partition: int, start_offset: int) -> list[int]:
    """Producer id, producer epoch and coordinator epoch of the transaction that begins there. Raises Refused."""
    found, refusals = describe_producers(cluster, partitions_of(cluster, topic, partition))
    if refusals:
        raise refusals[0]
    for each in found:
        if each.start_offset == start_offset:
            return [each.producer_id, each.producer_epoch, each.coordinator_epoch]
    reason = f"no open transaction begins at offset {start_offset}"
    raise Refused(f"{topic}-{partition}", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, reason)


def _write_abort(cluster: Cluster, row: dict[str, Any]) -> None:
    topic, partition = row["topic"], row["partition"]
    marker = WritableTxnMarker(
        producer_id=row["producer_id"],
        producer_epoch=row["producer_epoch"],
        coordinator_epoch=row["coordinator_epoch"],
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
    )

    def attempt() -> None:
        (leader,) = partitions_of(cluster, topic, partition).values()
        if leader < 0:
            raise Refused(f"{topic}-{partition}", ErrorCode.LEADER_NOT_AVAILABLE)
        answer = cluster.node(leader).call(WRITE_TXN_MARKERS, WriteTxnMarkersRequest(markers=[marker]))
        check(f"{topic}-{partition}", answer.markers[0].topics[0].partitions[0].error_code)

    patiently(attempt)


def _fence(cluster: Cluster, transactional_id: str) -> InitProducerIdResponse:
    connection, _ = cluster.coordinator(transactional_id, TRANSACTIONAL_ID)
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=_TERMINATION_TIMEOUT_MS)
    answer = connection.call(INIT_PRODUCER_ID, request)
    check(transactional_id, answer.error_code)
    return answer
