"""A producer and a consumer of librdkafka, each as fast as its quota lets it, behind a time in which they keep to it."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.campaigns.quota_differential.brokers import BYTES_PER_S, WINDOW_S

_READ: Final = "libraries"
_WRITTEN: Final = "libraries-out"
_VALUE: Final = bytes(5_000)


def measure_libraries(address: str, seconds: float) -> Mapping[str, float]:
    """Bytes a second of the values that were delivered, and consumed. The quotas are those of ``brokers.measure``."""
    _fill(address, int((seconds + 30) * BYTES_PER_S / len(_VALUE)))
    with ThreadPoolExecutor(2) as threads:
        produced = threads.submit(_produced, address, seconds)
        consumed = threads.submit(_consumed, address, seconds)
        return {"produce": produced.result(), "fetch": consumed.result()}


def problems(whose: str, rates: Mapping[str, float], percent: float = 5) -> list[str]:
    """In words, who did not get its quota. The headers of requests and batches count, and are not in the rates."""
    return [
        f"{whose}, librdkafka, {name}: {rate:.0f} bytes/s, not {BYTES_PER_S}"
        for name, rate in rates.items()
        if abs(rate / BYTES_PER_S - 1) * 100 > percent
    ]


def _fill(address: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": address, "client.id": "free", "batch.num.messages": 4})
    for _ in range(count):
        producer.produce(_READ, _VALUE)
        producer.poll(0)
    assert producer.flush(60) == 0


def _rate(seconds: float, advance: Callable[[], int]) -> float:
    """Bytes a second; ``advance`` works for a moment, and says how many there are by now. At first it is kept to the quota."""
    total = 0
    began_s = time.monotonic()
    while time.monotonic() < began_s + WINDOW_S:
        if total > (time.monotonic() - began_s) * BYTES_PER_S:
            time.sleep(0.005)
        else:
            total = advance()
    first, began_s = total, time.monotonic()
    while time.monotonic() < began_s + seconds:
        total = advance()
    return (total - first) / (time.monotonic() - began_s)


def _produced(address: str, seconds: float) -> float:
    delivered = 0

    def count(error: object, _: object) -> None:
        nonlocal delivered
        # What is under way in the end is purged.
        delivered += len(_VALUE) if error is None else 0

    producer = Producer(
        {
            "bootstrap.servers": address,
            "client.id": "produce",
            "batch.num.messages": 5,
            "queue.buffering.max.messages": 100,
            "message.timeout.ms": 120_000,
        }
    )

    def advance() -> int:
        try:
            producer.produce(_WRITTEN, _VALUE, on_delivery=count)
        except BufferError:
            producer.poll(0.05)
        producer.poll(0)
        return delivered

    try:
        return _rate(seconds, advance)
    finally:
        producer.purge()
        producer.flush(10)


def _consumed(address: str, seconds: float) -> float:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "client.id": "fetch",
            "group.id": "none",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": 20_000,
            "queued.max.messages.kbytes": 64,
            "fetch.queue.backoff.ms": 5,
        }
    )
    consumer.assign([TopicPartition(_READ, 0, 0)])
    consumed = 0

    def advance() -> int:
        nonlocal consumed
        message = consumer.poll(0.05)
        if message is not None:
            assert message.error() is None, message.error()
            consumed += len(_VALUE)
        return consumed

    try:
        return _rate(seconds, advance)
    finally:
        consumer.close()
