"""The feeder opens the accounts and produces orders, each once, across kills of the broker."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from tests.campaigns.soak.bank import ACCOUNTS, ORDERS, Partition, decode_order, encode, opening, order_of, place_of
from tests.campaigns.soak.books import effects, require

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

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
