"""Work beside the fuzzer of the live socket: a client that produces and fetches, and a deletion of the fuzzer's topics."""

import threading

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import read_records
from tests.raw_client import MAX_BYTES, RawClient, fetch_fields

CLIENT_TOPIC = "working-client"
# The target of frames in which only the batch is mutated (frames.frame_of_spoilt_batch).
TARGET_TOPIC = "t"
_PAUSE_S = 0.002
_RECORDS_A_BATCH = 3


class WorkingClient:
    """Produces, and fetches its own records, in a thread; once stopped it reports errors."""

    def __init__(self, client: RawClient, topic: str = CLIENT_TOPIC) -> None:
        self._client = client
        self._topic = topic
        self._client.call(ApiKey.CREATE_TOPICS, 7, topics=[{"name": topic, "num_partitions": 1, "replication_factor": 1}])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._stopping = threading.Event()
        self._values: list[bytes] = []
        self._fetched = 0
        self.operations = 0
        self.errors: list[str] = []

    @property
    def acknowledged(self) -> int:
        """How many records the broker has taken."""
        return len(self._values)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the operation under way, and stop."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def close(self) -> None:
        """Leave the broker."""
        self._client.socket.close()

    def check_every_record(self) -> None:
        """AssertionError unless every acknowledged record is fetched, in order and once."""
        found: list[bytes] = []
        while len(found) < len(self._values):
            values = self._fetch(len(found))
            assert values, f"the client's records end at {len(found)} of {len(self._values)}"
            found += values
        assert found == self._values

    def _run(self) -> None:
        try:
            while not self._stopping.wait(_PAUSE_S):
                self._work()
        except (OSError, AssertionError) as error:
            self.errors.append(f"{type(error).__name__}: {error}")

    def _work(self) -> None:
        end = len(self._values)
        values = [b"record %d" % number for number in range(end, end + _RECORDS_A_BATCH)]
        answer = self._client.produce(self._topic, *values)
        assert answer.error_code == 0, answer
        assert answer.base_offset == end, answer
        self._values += values
        fetched = self._fetch(end)
        assert fetched == values, f"{fetched} at offset {end}"
        self.operations += 2

    def _fetch(self, offset: int) -> list[bytes]:
        response = self._client.call(ApiKey.FETCH, 12, **fetch_fields(self._topic, offset))
        (partition,) = response.responses[0].partitions
        assert partition.error_code == 0, partition
        data = partition.records
        records = [record for position, _ in iter_batches(data) for record in read_records(data, position, limit_bytes=MAX_BYTES)]
        return [bytes(record.value) for record in records if record.offset >= offset]


def clean_topics(client: RawClient) -> int:
    """Delete every topic but the client's, and create a new target for mutated batches; returns the number deleted."""
    topics = client.call(ApiKey.METADATA, 12, topics=None).topics
    ids = [topic.topic_id for topic in topics if topic.name != CLIENT_TOPIC and not topic.is_internal]
    client.call(ApiKey.DELETE_TOPICS, 6, topics=[{"name": None, "topic_id": topic_id} for topic_id in ids])
    client.call(ApiKey.CREATE_TOPICS, 7, topics=[{"name": TARGET_TOPIC, "num_partitions": 1, "replication_factor": 1}])
    return len(ids)
