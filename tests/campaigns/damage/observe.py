"""All that clients can see of a broker: what a harmless damage leaves as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record
from tests.campaigns.damage.life import GROUPS, TOPICS, Client, Left

if TYPE_CHECKING:
    from odradek.testing.blocking import BlockingBroker

_EARLIEST, _LATEST, _MAX_TIMESTAMP = -2, -1, -3
_DUPLICATE_BATCH = "the batch is repeated"
Seen = dict[tuple[object, ...], object]


def observe(broker: BlockingBroker, left: Left) -> Seen:
    """Every answer, by its subject: (topic, partition) first where it is about one."""
    client = Client(broker)
    seen: Seen = {}
    topics = dict.fromkeys(TOPICS, 1) | {"__consumer_offsets": 2, "__transaction_state": 2}
    _cluster(client, seen)
    for topic, count in topics.items():
        for index in range(count):
            _log(client, topic, index, left.now_ms, seen)
            _producers(client, topic, index, seen)
    _groups(client, seen)
    _transactions(client, seen)
    for topic in TOPICS:
        _go_on(client, topic, left, seen)
    return seen


def _cluster(client: Client, seen: Seen) -> None:
    metadata = client.ask(ApiKey.METADATA, 12, topics=None)
    seen["cluster id",] = metadata.cluster_id
    for topic in metadata.topics:
        seen[topic.name, "id"] = topic.topic_id
        for each in topic.partitions:
            seen[topic.name, each.partition_index, "leader"] = each.leader_id, each.error_code
    asked = [{"resource_type": 2, "resource_name": name, "configuration_keys": None} for name in TOPICS]
    for result in client.ask(ApiKey.DESCRIBE_CONFIGS, 4, resources=asked).results:
        seen[result.resource_name, "configs"] = [(each.name, each.value) for each in result.configs]


def _log(client: Client, topic: str, index: int, now_ms: int, seen: Seen) -> None:
    asked = (_EARLIEST, _LATEST, _MAX_TIMESTAMP, now_ms - 300_000, now_ms - 300, now_ms - 100)
    offsets = []
    for timestamp in asked:
        partitions = [{"partition_index": index, "timestamp": timestamp}]
        answer = client.ask(ApiKey.LIST_OFFSETS, 7, replica_id=-1, topics=[{"name": topic, "partitions": partitions}])
        found = answer.topics[0].partitions[0]
        offsets.append((found.error_code, found.offset, found.timestamp))
    seen[topic, index, "offsets"] = offsets
    for is_committed in (False, True):
        seen[topic, index, "committed records" if is_committed else "records"] = _records(
            client, topic, index, max(offsets[0][1], 0), is_committed=is_committed
        )
    epochs = [{"partition": index, "leader_epoch": 0}]
    answer = client.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 3, replica_id=-1, topics=[{"topic": topic, "partitions": epochs}])
    found = answer.topics[0].partitions[0]
    seen[topic, index, "epochs"] = found.error_code, found.leader_epoch, found.end_offset


def _records(client: Client, topic: str, index: int, offset: int, *, is_committed: bool) -> object:
    """The bytes, the aborted transactions among them, and where it ends."""
    found: list[object] = []
    while True:
        answer = client.fetch(topic, index, offset, is_committed=is_committed)
        data = bytes(answer.records or b"")
        aborted = [(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()]
        found.append((answer.error_code, data, aborted, answer.last_stable_offset, answer.log_start_offset))
        end = _end_of(data)
        if end <= offset:
            return found
        offset = end


def _end_of(data: bytes) -> int:
    """The offset behind the last whole batch; -1 without one."""
    return max((header.next_offset for _, header in iter_batches(data)), default=-1)


def _producers(client: Client, topic: str, index: int, seen: Seen) -> None:
    asked = [{"name": topic, "partition_indexes": [index]}]
    (found,) = client.ask(ApiKey.DESCRIBE_PRODUCERS, 0, topics=asked).topics[0].partitions
    producers = [
        (each.producer_id, each.producer_epoch, each.last_sequence, each.last_timestamp, each.current_txn_start_offset)
        for each in found.active_producers
    ]
    seen[topic, index, "producers"] = found.error_code, sorted(producers)


def _groups(client: Client, seen: Seen) -> None:
    for group in GROUPS:
        asked = [{"group_id": group, "topics": None}]
        (found,) = client.ask(ApiKey.OFFSET_FETCH, 8, groups=asked).groups
        partitions: list[Any] = [(topic.name, each) for topic in found.topics for each in topic.partitions]
        offsets = [(name, each.partition_index, each.committed_offset, each.error_code) for name, each in partitions]
        seen["group", group] = found.error_code, offsets


def _transactions(client: Client, seen: Seen) -> None:
    ids = ["ledger", "journal"]
    states = client.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=ids).transaction_states
    for name, found in zip(ids, states, strict=True):
        seen["transaction", name] = found.error_code, found.transaction_state, found.producer_id, found.producer_epoch


def _go_on(client: Client, topic: str, left: Left, seen: Seen) -> None:
    """Produce: where the log goes on, and whether the last batch of an idempotent producer is known when it is repeated."""
    record = [Record(timestamp=left.now_ms, key=b"key", value=b"next")]
    if topic in left.producers:
        producer_id, epoch, sequence = left.producers[topic]
        producer = {"producer_id": producer_id, "producer_epoch": epoch}
        seen[topic, 0, _DUPLICATE_BATCH] = client.produce(topic, record, **producer, base_sequence=sequence - 1)
        seen[topic, 0, "the next batch"] = client.produce(topic, record, **producer, base_sequence=sequence)
    seen[topic, 0, "appended"] = client.produce(topic, record)
