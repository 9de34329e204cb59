"""A client of a broker in process, by frames. Its responses are decoded by kio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.records import Record, build_batch
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
