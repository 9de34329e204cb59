"""The feeder opens the accounts and produces orders, each once, across kills of the broker."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.soak.bank import (
    ACCOUNTS,
    MAKES,
    ORDER_PARTITIONS,
    ORDERS,
    Partition,
    decode_order,
    encode,
    opening,
    order_of,
    orders_of,
    place_of,
)
from tests.campaigns.soak.books import Violation, effects, require
from tests.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from confluent_kafka import KafkaError, Message

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


FLUSH_TIMEOUT_S = 40.0
INTERVAL_S = 0.01
# The feeder waits while this much work is before the tellers.
LONGEST_QUEUE_S = 15.0
RECONNECT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "log_level": 0}


def open_accounts(address: str) -> None:
    """Put the same amount into every account, in one transaction."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": "opening", "log_level": 0})
    producer.init_transactions(FLUSH_TIMEOUT_S)
    producer.begin_transaction()
    for output in opening():
        producer.produce(output.partition[0], output.value, partition=output.partition[1])
    producer.commit_transaction(FLUSH_TIMEOUT_S)


class Feeder:
    """Produces ``orders_a_second`` in a thread, to the partitions of orders in turn; fewer while the tellers are behind."""

    def __init__(self, address: str, orders_a_second: float) -> None:
        self.count = 0
        # Told by the auditor: the orders carried out.
        self.carried_out = 0
        # The offset after the last acknowledged order.
        self.ends: dict[Partition, int] = dict.fromkeys(ORDERS, 0)
        self.failure: str | None = None
        self._orders_a_second = orders_a_second
        self._balances = dict.fromkeys(range(ACCOUNTS), 0)
        config = {"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 1, **RECONNECT}
        self._producer = Producer(config)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._feed, name="feeder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop when every order is acknowledged."""
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(FLUSH_TIMEOUT_S) == 0, "orders are not acknowledged"
        self.raise_failure()
        assert sum(self.ends.values()) == self.count, "orders were refused"

    def abandon(self) -> None:
        """Stop as it is; nothing if it has stopped."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._producer.purge()

    def raise_failure(self) -> None:
        require(self.failure is None, str(self.failure))

    def balances(self, opening_balance: int) -> dict[int, int]:
        """The balance of each account when all orders have been carried out."""
        return {account: opening_balance + change for account, change in self._balances.items()}

    def _feed(self) -> None:
        due, before = 0.0, time.monotonic()
        while not self._stopping.wait(INTERVAL_S):
            now = time.monotonic()
            due += (now - before) * self._orders_a_second
            before = now
            queue = self._orders_a_second * LONGEST_QUEUE_S - (self.count - self.carried_out)
            for _ in range(int(min(due, queue))):
                self._produce()
            # What could not be ordered in its time is not made up for.
            due %= 1
            self._producer.poll(0)

    def _produce(self) -> None:
        order = order_of(self.count)
        (topic, index), _ = place_of(self.count)
        self._producer.produce(topic, encode(order), partition=index, on_delivery=self._delivered)
        self.count += 1
        for account, amount in effects(order):
            self._balances[account] += amount

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            return
        number = decode_order(message.value()).number
        place = (message.topic(), message.partition()), message.offset()
        if place != place_of(number):
            self.failure = self.failure or f"order {number} is acknowledged at {place}, and not at {place_of(number)}"
        self.ends[place[0]] = max(self.ends[place[0]], place[1] + 1)
