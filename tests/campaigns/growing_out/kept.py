"""What each run leaves for the next, and how the next goes on with it, by the requests that a client's library would send.

A run, number N, makes the topic ``kept-N`` (two partitions) and leaves in it

    kept-N-sequence     a producer with ids and sequence numbers, and no transactions
    kept-N-committed    a committed transaction, with offsets of the group ``kept-N``
    kept-N-aborted      an aborted one
    kept-N-going        an open one, which its own producer commits in the next run
    kept-N-gone         an open one, whose producer's successor comes in the next run, and so aborts it
    kept-N-open         an open one that stays so

The next run goes on: the next sequence number is taken and the last batch, sent again, is known; the transactions end.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch
from tests.campaigns.growing_out.inventory import KEPT, Inventory
from tests.campaigns.growing_out.kafkas_own import accept
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.raw_client import RawClient, produce_fields

_Entity = dict[str, str | None]


def described_quotas(client: RawClient) -> Inventory:
    """Of every entity."""
    answer = accept(client.call(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, components=[], strict=False))
    return {
        f"quotas {sorted((str(part.entity_type), part.entity_name) for part in entry.entity)}": sorted(
            (str(value.key), float(value.value)) for value in entry.values
        )
        for entry in answer.entries
    }


def leave_quotas(client: RawClient, number: int) -> None:
    """Set some of the run's own, change those of all runs, and remove what the run before has set of its own."""
    mine, before = f"{KEPT} {number}/é", f"{KEPT} {number - 1}/é"
    entries = [
        _entry({"user": mine}, producer_byte_rate=1000.0 + number, request_percentage=12.5),
        _entry({"client-id": None, "user": mine}, consumer_byte_rate=2000.0),
        _entry({"user": None}, controller_mutation_rate=1e6 + number),
        _entry({"ip": "10.1.2.3"}, connection_creation_rate=100.0 + number),
        _entry({"user": before}, request_percentage=None),
    ]
    for result in client.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=False).entries:
        accept(result)
    name = f"quotas {[('user', None)]}"
    # Kafka's broker hears of it after its controller has answered.
    until(lambda: described_quotas(client).get(name) == [("controller_mutation_rate", 1e6 + number)])


def _entry(entity: _Entity, **values: float | None) -> dict[str, Any]:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in values.items()],
    }


_TIMEOUT_MS = 900_000
# A producer that continues: a coordinator may load, a transaction may be being ended.
_TRANSIENT = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
}


@dataclass(slots=True)
class KeptProducer:
    """A producer, as its library has it in mind."""

    name: str
    producer_id: int
    epoch: int
    next_sequence: dict[int, int] = field(default_factory=dict)


class Kept:
    """``checks`` counts what was looked at, ``differences`` has what was not as it is to be."""

    def __init__(self) -> None:
        self.checks = 0
        self.differences: list[str] = []
        self._producers: dict[str, KeptProducer] = {}
        self._runs: list[str] = []

    def leave(self, client: RawClient) -> None:
        """Make what the next run is to go on with."""
        run = f"{KEPT}-{len(self._runs)}"
        self._runs.append(run)
        configs = [
            {"name": "retention.ms", "value": str(77 * 10**9 + len(self._runs))},
            {"name": "index.interval.bytes", "value": "1"},
        ]
        topic = {"name": run, "num_partitions": 2, "replication_factor": 1, "assignments": [], "configs": configs}
        self._until(lambda: client.call(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=10_000).topics[0])
        self._begin(client, f"{run}-sequence", transactional=False)
        for partition in range(2):
            self._send(client, f"{run}-sequence", run, partition)
        for fate in ("committed", "aborted", "going", "gone", "open"):
            name = f"{run}-{fate}"
            self._begin(client, name, transactional=True)
            for partition in range(2):
                self._send(client, name, run, partition)
            self._offer_offset(client, name, run, 100 + len(name))
            if fate in ("committed", "aborted"):
                self._end(client, name, commit=fate == "committed")
        self._commit_offset(client, run, 5)

    def go_on(self, client: RawClient) -> None:
        """Go on with all that was left, as if there had been no stop."""
        for run in self._runs:
            self._go_on_with_sequence(client, f"{run}-sequence", run)
        if not self._runs:
            return
        run = self._runs[-1]
        self._send(client, f"{run}-going", run, 0)
        self._end(client, f"{run}-going", commit=True)
        former = self._producers[f"{run}-gone"]
        self._begin(client, f"{run}-gone", transactional=True)
        successor = self._producers[f"{run}-gone"]
        self._expect(
            f"{run}-gone: the successor's id and epoch",
            (successor.producer_id, successor.epoch > former.epoch),
            (former.producer_id, True),
        )
        self._producers[f"{run}-former"] = former
        answer = self._produce(client, f"{run}-former", run, 0)
        self._expect(f"{run}-gone: the former one is fenced", answer.error_code, ErrorCode.INVALID_PRODUCER_EPOCH)

    def _go_on_with_sequence(self, client: RawClient, name: str, topic: str) -> None:
        for partition in range(2):
            producer = self._producers[name]
            producer.next_sequence[partition] -= 1
            again = self._produce(client, name, topic, partition)
            self._expect(f"{name}: the last batch again", int(again.error_code), 0)
            at = int(again.base_offset)
            answer = self._send(client, name, topic, partition)
            self._expect(f"{name}: the next batch comes behind", int(answer.base_offset) > at >= 0, True)

    def _begin(self, client: RawClient, name: str, *, transactional: bool) -> None:
        if transactional:
            self._find_coordinator(client, 1, name)
        answer = self._until(
            lambda: client.call(
                ApiKey.INIT_PRODUCER_ID,
                5,
                transactional_id=name if transactional else None,
                transaction_timeout_ms=_TIMEOUT_MS,
            )
        )
        self._producers[name] = KeptProducer(name, answer.producer_id, answer.producer_epoch)

    def _find_coordinator(self, client: RawClient, kind: int, key: str) -> None:
        """Whose topic is made then, where there is none."""
        self._until(lambda: client.call(ApiKey.FIND_COORDINATOR, 4, key_type=kind, coordinator_keys=[key]).coordinators[0])

    def _send(self, client: RawClient, name: str, topic: str, partition: int) -> Any:
        return self._until(lambda: self._produce(client, name, topic, partition))

    def _produce(self, client: RawClient, name: str, topic: str, partition: int) -> Any:
        """One batch; the sequence number goes on where it is taken."""
        producer = self._producers[name]
        transactional = not name.endswith("-sequence")
        sequence = producer.next_sequence.get(partition, 0)
        batch = build_batch(
            [Record(value=f"{name} {sequence}".encode(), timestamp=int(time.time() * 1000))],
            base_sequence=sequence,
            transactional=transactional,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
        )
        fields = produce_fields(topic, batch, partition=partition)
        answer = client.call(ApiKey.PRODUCE, 12, transactional_id=producer.name if transactional else None, **fields)
        found = answer.responses[0].partition_responses[0]
        if not found.error_code:
            producer.next_sequence[partition] = sequence + 1
        return found

    def _offer_offset(self, client: RawClient, name: str, group: str, offset: int) -> None:
        self._find_coordinator(client, 0, group)
        producer = self._producers[name]
        partitions = [{"partition_index": 1, "committed_offset": offset, "committed_metadata": name}]
        fields = {"transactional_id": name, "producer_id": producer.producer_id, "producer_epoch": producer.epoch}
        topics = [{"name": group, "partitions": partitions}]
        self._until(
            lambda: client.call(ApiKey.TXN_OFFSET_COMMIT, 5, group_id=group, topics=topics, **fields).topics[0].partitions[0]
        )

    def _commit_offset(self, client: RawClient, group: str, offset: int) -> None:
        topics = [
            {"name": group, "partitions": [{"partition_index": 0, "committed_offset": offset, "committed_metadata": "kept"}]}
        ]
        self._until(lambda: client.call(ApiKey.OFFSET_COMMIT, 8, group_id=group, topics=topics).topics[0].partitions[0])

    def _end(self, client: RawClient, name: str, *, commit: bool) -> None:
        producer = self._producers[name]
        fields = {"transactional_id": producer.name, "producer_id": producer.producer_id, "producer_epoch": producer.epoch}
        answer = self._until(lambda: client.call(ApiKey.END_TXN, 5, committed=commit, **fields))
        self._expect(f"{name}: the id after its transaction", answer.producer_id, producer.producer_id)
        self._producers[name] = KeptProducer(producer.name, answer.producer_id, answer.producer_epoch)

    def _until(self, call: Callable[[], Any]) -> Any:
        """The answer, once it is none of those that a library would not tell its user."""
        answers = []

        def is_final() -> bool:
            answers.append(call())
            return answers[-1].error_code not in _TRANSIENT

        until(is_final)
        self.checks += 1
        if answers[-1].error_code:
            raise AssertionError(answers[-1])
        return answers[-1]

    def _expect(self, what: str, found: object, wanted: object) -> None:
        self.checks += 1
        if found != wanted:
            self.differences.append(f"{what}: {found}, and not {wanted}")
