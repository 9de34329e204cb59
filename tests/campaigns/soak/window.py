"""The broker's responses to an outside observer, across its restarts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.soak.bank import MAKES, ORDER_PARTITIONS, Partition, orders_of
from tests.campaigns.soak.books import Violation
from tests.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.broker_process import BrokerProcess
    from tests.campaigns.soak.kafka_broker import KafkaBroker

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
LATEST_TIMESTAMP = -1
# A broker may take half a minute to start, beside its clients on a busy machine.
ANSWER_TIMEOUT_S = 90.0
RETRY_AFTER_S = 0.05
# UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, COORDINATOR_LOAD_IN_PROGRESS,
# COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, UNSTABLE_OFFSET_COMMIT
RETRIABLE = {3, 5, 6, 14, 15, 16, 88}
ENDED_STATES = {"Empty", "CompleteCommit", "CompleteAbort", "Dead"}


class Window:
    """Repeats each request until it is answered, on a new connection each time: the broker may be away."""

    def __init__(self, broker: BrokerProcess | KafkaBroker) -> None:
        self._broker = broker

    def last_stable_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return self._ends(partitions, READ_COMMITTED)

    def high_watermarks(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return self._ends(partitions, READ_UNCOMMITTED)

    def partitions(self) -> list[Partition]:
        """Every partition of the broker, including the coordinators'."""
        response = self._insist(lambda client: client.call(ApiKey.METADATA, 9, topics=None))
        return [(topic.name, each.partition_index) for topic in response.topics for each in topic.partitions]

    def open_transactions(self) -> dict[str, str]:
        """Transactional ids with an open transaction, and their states."""

        def ask(client: RawClient) -> Any:
            response = client.call(ApiKey.LIST_TRANSACTIONS, 1)
            if response.error_code in RETRIABLE:
                raise _NotYet(f"ListTransactions: error {response.error_code}")
            assert response.error_code == 0, f"ListTransactions: error {response.error_code}"
            return response

        response = self._insist(ask)
        states = {each.transactional_id: each.transaction_state for each in response.transaction_states}
        return {name: state for name, state in states.items() if state not in ENDED_STATES}

    def committed(self) -> dict[Partition, int]:
        """Every group's offsets, each as soon as no transaction can change it (``require_stable``)."""
        unknown = {orders_of(make): set(range(ORDER_PARTITIONS)) for make in MAKES}
        offsets: dict[Partition, int] = {}

        def ask(client: RawClient) -> None:
            for group, indexes in unknown.items():
                for partition in self._offset_fetch(client, group, indexes):
                    if partition.error_code not in RETRIABLE:
                        assert partition.error_code == 0, f"offsets of {group}: error {partition.error_code}"
                        offsets[group, partition.partition_index] = max(partition.committed_offset, 0)
                        indexes.remove(partition.partition_index)
            if any(unknown.values()):
                raise _NotYet(f"offsets that are not stable: {unknown}")

        self._insist(ask)
        return offsets

    def _offset_fetch(self, client: RawClient, group: str, indexes: set[int]) -> list[Any]:
        if not indexes:
            return []
        asked = {"group_id": group, "topics": [{"name": group, "partition_indexes": sorted(indexes)}]}
        answer = client.call(ApiKey.OFFSET_FETCH, 8, groups=[asked], require_stable=True).groups[0]
        if answer.error_code in RETRIABLE:
            return []
        assert answer.error_code == 0, f"offsets of {group}: error {answer.error_code}"
        return list(answer.topics[0].partitions)

    def _ends(self, partitions: Iterable[Partition], isolation: int) -> dict[Partition, int]:
        by_topic: dict[str, list[int]] = {}
        for topic, index in partitions:
            by_topic.setdefault(topic, []).append(index)
        topics = [
            {"name": name, "partitions": [{"partition_index": index, "timestamp": LATEST_TIMESTAMP} for index in indexes]}
            for name, indexes in by_topic.items()
        ]

        def ask(client: RawClient) -> dict[Partition, int]:
            response = client.call(ApiKey.LIST_OFFSETS, 5, replica_id=-1, isolation_level=isolation, topics=topics)
            found = [(topic.name, each) for topic in response.topics for each in topic.partitions]
            if errors := {each.error_code for _, each in found} - {0}:
                assert errors <= RETRIABLE, f"ListOffsets: errors {errors}"
                raise _NotYet(f"ListOffsets: errors {errors}")
            return {(name, each.partition_index): each.offset for name, each in found}

        return self._insist(ask)

    def _insist(self, ask: Callable[[RawClient], Any]) -> Any:
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            try:
                with RawClient(self._broker.host, self._broker.port) as client:
                    return ask(client)
            except (OSError, _NotYet) as error:
                if time.monotonic() >= deadline:
                    raise Violation(f"no answer within {ANSWER_TIMEOUT_S:.0f} s; the last was: {error}") from error
            time.sleep(RETRY_AFTER_S)


class _NotYet(Exception):
    """A response after which to ask again."""
