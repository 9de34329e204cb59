"""The life of a broker before its files are damaged, and the two ways in which it ends.

    plain, twin, other   several segments, the last of them active; twin has batches of the same sizes as plain, other has more
    short                one segment, without an entry in its indexes
    trimmed              DeleteRecords has removed segments, and stopped in the middle of another
    latest               compacted
    ledger, journal      transactions, committed and aborted, in each segment; one that is open
    repeating, again     of an idempotent producer each, which may send its last batch once more

and groups with offsets, on a __consumer_offsets with several segments; a metadata log with a snapshot; two data directories.
Time is virtual, the disk is in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.records import Record, build_batch
from odradek.testing import SocketlessBroker
from odradek.testing.disk import MemoryDisk
from odradek.timing.clock import VirtualClock
from tests.raw_client import decode_response, encode_request, fetch_fields, produce_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.testing.blocking import BlockingBroker


_WAITS_MS = 60_000
_PRODUCE, _FETCH = 12, 12
# COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS
_TRY_AGAIN = (14, 15, 16, 51)
_TRIES = 20


class Client:
    """Requests to ``broker``, each answered before the next."""

    def __init__(self, broker: BlockingBroker) -> None:
        self._broker = broker

    def ask(self, api_key: ApiKey, version: int, **fields: Any) -> Any:
        """The response to one request. Raises Unanswered after a minute of the broker's clock."""
        frame = encode_request(api_key, version, **fields)[4:]
        answer = self._broker.ask_bytes(frame, within_ms=_WAITS_MS)
        return decode_response(api_key, version, answer)[1]

    def create(self, name: str, configs: Mapping[str, str]) -> None:
        """Create a topic of one partition."""
        settings = [{"name": key, "value": value} for key, value in configs.items()]
        asked = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": settings}
        (topic,) = self.ask(ApiKey.CREATE_TOPICS, 5, topics=[asked], timeout_ms=1000).topics
        assert topic.error_code == 0, topic

    def alter(self, topic: str, name: str, value: str) -> None:
        """Set a config of a topic."""
        configs = [{"name": name, "config_operation": 0, "value": value}]
        asked = [{"resource_type": 2, "resource_name": topic, "configs": configs}]
        (answered,) = self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=asked).responses
        assert answered.error_code == 0, answered

    def produce(self, topic: str, records: list[Record], **batch: Any) -> tuple[int, int]:
        """(error code, base offset) of one batch."""
        fields = produce_fields(topic, build_batch(records, **batch))
        if batch.get("transactional"):
            fields["transactional_id"] = topic
        (answered,) = self.ask(ApiKey.PRODUCE, _PRODUCE, **fields).responses[0].partition_responses
        return answered.error_code, answered.base_offset

    def fetch(self, topic: str, partition: int, offset: int, *, is_committed: bool) -> Any:
        """The answer of one partition."""
        fields = fetch_fields(topic, offset, partition=partition, isolation_level=int(is_committed))
        return self.ask(ApiKey.FETCH, _FETCH, **fields).responses[0].partitions[0]

    def init(self, transactional_id: str | None) -> tuple[int, int]:
        """(producer id, epoch)."""
        asked = {"transactional_id": transactional_id, "transaction_timeout_ms": 600_000}
        answer = self.ask(ApiKey.INIT_PRODUCER_ID, 4, **asked)
        for _ in range(_TRIES):
            if answer.error_code not in _TRY_AGAIN:
                break
            self._broker.settle()
            answer = self.ask(ApiKey.INIT_PRODUCER_ID, 4, **asked)
        assert answer.error_code == 0, answer
        return answer.producer_id, answer.producer_epoch

    def end(self, transactional_id: str, identity: tuple[int, int], *, commit: bool) -> tuple[int, int]:
        """End a transaction, and wait until its markers are written; the producer's next identity."""
        producer_id, epoch = identity
        asked = {"transactional_id": transactional_id, "producer_id": producer_id, "producer_epoch": epoch, "committed": commit}
        answer = self.ask(ApiKey.END_TXN, 5, **asked)
        assert answer.error_code == 0, answer
        self._broker.settle()
        return answer.producer_id, answer.producer_epoch

    def commit(self, group: str, topic: str, offset: int) -> None:
        """Commit an offset without membership."""
        partitions = [{"partition_index": 0, "committed_offset": offset}]
        asked = [{"name": topic, "partitions": partitions}]
        answer = self.ask(ApiKey.OFFSET_COMMIT, 8, group_id=group, topics=asked)
        for _ in range(_TRIES):
            if answer.topics[0].partitions[0].error_code not in _TRY_AGAIN:
                break
            self._broker.settle()
            answer = self.ask(ApiKey.OFFSET_COMMIT, 8, group_id=group, topics=asked)
        assert answer.topics[0].partitions[0].error_code == 0, answer


DATA_DIRS = ("/data", "/more")
CONFIGS = {
    "log.dirs": ",".join(DATA_DIRS),
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "log.index.interval.bytes": "300",
    "log.cleaner.backoff.ms": "1000",
    "metadata.log.max.record.bytes.between.snapshots": "2500",
}
_SMALL = {"internal.segment.bytes": "2000"}
TOPICS = {
    "plain": _SMALL,
    "twin": _SMALL,
    "other": _SMALL,
    "short": {},
    "trimmed": _SMALL,
    "latest": _SMALL | {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "1"},
    "ledger": _SMALL,
    "journal": _SMALL,
    "repeating": _SMALL,
    "again": _SMALL,
}
GROUPS = ("first", "second", "third")
_SEED = 20
_CHECKPOINT_MS = 200_000


class Left(NamedTuple):
    """What a broker has left: its files, its clock, and the producers that may go on, by topic: identity and next sequence."""

    files: dict[str, bytes]
    now_ms: int
    producers: dict[str, tuple[int, int, int]]


class _Life:
    def __init__(self, broker: SocketlessBroker, clock: VirtualClock) -> None:
        self._clock = clock
        self._running = broker
        self.producers: dict[str, tuple[int, int, int]] = {}

    def begin(self, client: Client) -> None:
        """Create the topics, the coordinators' too."""
        for name, configs in TOPICS.items():
            client.create(name, configs)
        client.init("ledger")
        client.commit(GROUPS[0], "plain", 0)
        for name in ("__consumer_offsets", "__transaction_state"):
            client.alter(name, "internal.segment.bytes", "900")

    def live(self, client: Client, *, again: bool) -> None:
        """A day of it; the second time ``again``, after the checkpoints were written."""
        start = 1000 if again else 0
        for number in range(start, start + (7 if again else 45)):
            for topic in ("plain", "twin", "trimmed"):
                self._say(client, topic, number)
            self._say(client, "latest", number, key=b"key %d" % (number % 4))
            for _ in range(2):
                self._say(client, "other", number)
        for number in range(3):
            self._say(client, "short", number)
        self._transact(client, "ledger", 6 if again else 12)
        self._transact(client, "journal", 3 if again else 9)
        self._repeat(client, "repeating", 5 if again else 25)
        self._repeat(client, "again", 6 if again else 31)
        for number in range(4 if again else 12):
            for place, group in enumerate(GROUPS):
                client.commit(group, "plain", start + number + place)

    def _records(self, *values: bytes, key: bytes | None = None) -> list[Record]:
        self._clock.advance(7)
        return [Record(timestamp=self._clock.now_ms(), key=key, value=value) for value in values]

    def _say(self, client: Client, topic: str, number: int, key: bytes | None = None) -> None:
        code, _ = client.produce(topic, self._records(b"of %-8s %5d" % (topic.encode(), number), key=key))
        assert code == 0, (topic, code)

    def _transact(self, client: Client, topic: str, count: int) -> None:
        """Every third is aborted."""
        producer_id, epoch = client.init(topic)
        for number in range(count):
            code, _ = client.produce(
                topic,
                self._records(b"one %d" % number, b"two %d" % number),
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=0,
                transactional=True,
            )
            assert code == 0, (topic, code)
            producer_id, epoch = client.end(topic, (producer_id, epoch), commit=number % 3 > 0)

    def _repeat(self, client: Client, topic: str, count: int) -> None:
        producer_id, epoch, sequence = self.producers.get(topic) or (*client.init(None), 0)
        for number in range(count):
            records = self._records(b"of %s %4d" % (topic.encode(), number))
            code, _ = client.produce(
                topic, records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence + number
            )
            assert code == 0, (topic, code)
        self.producers[topic] = producer_id, epoch, sequence + count


def live(*, is_clean: bool) -> Left:
    """Live, and stop gracefully or be killed."""
    disk, clock = MemoryDisk(), VirtualClock()
    broker = SocketlessBroker(file_system=disk, configs=CONFIGS, clock=clock, background="inline", seed=_SEED)
    life = _Life(broker, clock)
    with broker as running:
        client = Client(running)
        life.begin(client)
        life.live(client, again=False)
        asked = {"name": "trimmed", "partitions": [{"partition_index": 0, "offset": 33}]}
        (trimmed,) = client.ask(ApiKey.DELETE_RECORDS, 2, topics=[asked], timeout_ms=1000).topics
        assert trimmed.partitions[0].error_code == 0
        # Retention, cleaner, checkpoints.
        for _ in range(3):
            running.advance(_CHECKPOINT_MS)
            running.settle()
        life.live(client, again=True)
        running.settle()
        if is_clean:
            running.stop()
        else:
            running.kill()
    return Left(disk.contents(), clock.now_ms(), life.producers)


def disk_of(files: dict[str, bytes]) -> MemoryDisk:
    """A disk with these files, all of them synced."""
    disk = MemoryDisk()
    for path, content in files.items():
        disk.make_dirs(path.rpartition("/")[0])
        disk.write_atomic(path, content)
    return disk


def broker_on(files: dict[str, bytes], now_ms: int) -> SocketlessBroker:
    """A broker that is to start on these files."""
    clock = VirtualClock(now_ms)
    return SocketlessBroker(file_system=disk_of(files), configs=CONFIGS, clock=clock, background="inline", seed=_SEED)
