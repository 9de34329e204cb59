"""Producers, each in a thread: one that feeds every topic, and transactional ones, some of them in trouble."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import Producer

_TIMEOUT_S = 20.0
_END_TIMEOUT_S = 30.0


class _Worker:
    """A thread that works until told to end."""

    def __init__(self, name: str) -> None:
        self._is_told_to_end = threading.Event()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Make the thread end, and wait for it."""
        self._is_told_to_end.set()
        self._thread.join(_END_TIMEOUT_S)
        if self._thread.is_alive():
            raise TimeoutError(f"{self._thread.name} did not end")

    def _work(self) -> None:
        raise NotImplementedError


class Feed(_Worker):
    """Repeatedly produces one record to each partition of each topic."""

    def __init__(self, address: str, partitions: Sequence[tuple[str, int]], *, pause_s: float) -> None:
        super().__init__("feed")
        self._partitions, self._pause_s = partitions, pause_s
        self._producer = Producer({"bootstrap.servers": address, "client.id": "feed", "log_level": 0})

    def _work(self) -> None:
        sent = 0
        while not self._is_told_to_end.wait(self._pause_s):
            for topic, partition in self._partitions:
                self._producer.produce(topic, f"{sent}", partition=partition)
            self._producer.poll(0)
            sent += 1
        self._producer.flush(_TIMEOUT_S)


@dataclass(frozen=True, kw_only=True, slots=True)
class Habits:
    """A transactional producer's behaviour: every ``abort_every``-th transaction aborts, number ``slow_at`` takes ``slow_s``."""

    pause_s: float = 0.4
    abort_every: int | None = None
    slow_at: int | None = None
    slow_s: float = 0.0


class Transactions(_Worker):
    """Consecutive transactions."""

    def __init__(self, address: str, transactional_id: str, topic: str, habits: Habits) -> None:
        super().__init__(transactional_id)
        self._topic, self._habits = topic, habits
        self._producer = _transactional(address, transactional_id, timeout_ms=60_000)

    def _work(self) -> None:
        habits, number = self._habits, 0
        self._producer.init_transactions(_TIMEOUT_S)
        while not self._is_told_to_end.wait(habits.pause_s):
            number += 1
            self._producer.begin_transaction()
            self._producer.produce(self._topic, f"{number}", partition=number % 2)
            if number == habits.slow_at:
                self._producer.flush(_TIMEOUT_S)
                self._is_told_to_end.wait(habits.slow_s)
            if habits.abort_every is not None and number % habits.abort_every == 0:
                self._producer.flush(_TIMEOUT_S)
                self._producer.abort_transaction(_TIMEOUT_S)
            else:
                self._producer.commit_transaction(_TIMEOUT_S)


class HangingTransaction:
    """A producer that begins a transaction and stops: the coordinator aborts the transaction at its timeout."""

    def __init__(self, address: str, transactional_id: str, topic: str, *, timeout_ms: int) -> None:
        self._producer = _transactional(address, transactional_id, timeout_ms=timeout_ms)
        self._producer.init_transactions(_TIMEOUT_S)
        self._producer.begin_transaction()
        self._producer.produce(topic, "the last that was heard of it", partition=0)
        self._producer.flush(_TIMEOUT_S)


def _transactional(address: str, transactional_id: str, *, timeout_ms: int) -> Producer:
    return Producer(
        {
            "bootstrap.servers": address,
            "client.id": transactional_id,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "linger.ms": 0,
            "log_level": 0,
        }
    )
