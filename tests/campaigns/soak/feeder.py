"""The feeder opens the accounts and produces orders, each once, across kills of the broker."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from tests.campaigns.soak.bank import ACCOUNTS, MAKES, ORDER_PARTITIONS, Order, Partition, encode, opening, orders_of

if TYPE_CHECKING:
    import random

    from confluent_kafka import KafkaError, Message

FLUSH_TIMEOUT_S = 40.0
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
    """Produces ``orders_a_second`` in a thread, to the partitions of orders in turn."""

    def __init__(self, address: str, rng: random.Random, orders_a_second: float) -> None:
        self.orders: dict[int, Order] = {}
        # The place of each acknowledged order, and the offset after the last one.
        self.placed: dict[int, tuple[Partition, int]] = {}
        self.ends: dict[Partition, int] = {(orders_of(make), index): 0 for make in MAKES for index in range(ORDER_PARTITIONS)}
        self._rng = rng
        self._interval_s = 1 / orders_a_second
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
        assert set(self.placed) == set(self.orders), "orders were refused"

    def balances(self, opening_balance: int) -> dict[int, int]:
        """The balance of each account when all orders have been carried out."""
        balances = dict.fromkeys(range(ACCOUNTS), opening_balance)
        for order in self.orders.values():
            balances[order.payer] -= order.amount
            balances[order.payee] += order.amount
        return balances

    def _feed(self) -> None:
        partitions = list(self.ends)
        while not self._stopping.wait(self._interval_s):
            number = len(self.orders)
            payer, payee = self._rng.sample(range(ACCOUNTS), 2)
            order = self.orders[number] = Order(number, payer, payee, self._rng.randrange(1, 100))
            topic, index = partitions[number % len(partitions)]
            self._producer.produce(topic, encode(order), partition=index, on_delivery=self._delivered(number))
            self._producer.poll(0)

    def _delivered(self, number: int):
        def note(error: KafkaError | None, message: Message) -> None:
            if error is None:
                partition = (message.topic(), message.partition())
                self.placed[number] = partition, message.offset()
                self.ends[partition] = max(self.ends[partition], message.offset() + 1)

        return note
