"""What the crash tests share: a kill at a random moment, and a look at everything a broker has."""

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.record_batch import LOG_OVERHEAD
from odradek.protocol.records import Record, read_records
from tests.broker_process import BrokerProcess
from tests.raw_client import RawClient, fetch_fields


def seeded(name: str) -> random.Random:
    """A source of randomness whose seed is printed, to be put in ``ODRADEK_CRASH_SEED`` to see a failure again."""
    seed = os.environ.get("ODRADEK_CRASH_SEED") or str(random.SystemRandom().getrandbits(32))
    print(f"{name}: ODRADEK_CRASH_SEED={seed}")
    return random.Random(f"{name} {seed}")


def until_killed(broker: BrokerProcess, delay_s: float, step: Callable[[], None]) -> None:
    """Repeat ``step`` until it finds that the broker is gone, which is killed (-9) after ``delay_s``."""
    killer = threading.Timer(delay_s, os.kill, (broker.pid, signal.SIGKILL))
    killer.start()
    try:
        while True:
            step()
    except OSError:
        pass
    finally:
        killer.join()
        broker.kill9()


def read_log(client: RawClient, topic: str, partition: int = 0) -> Iterator[Record]:
    """All records of a partition, from offset 0 on."""
    offset = 0
    while True:
        fetched = client.call(ApiKey.FETCH, 12, **fetch_fields(topic, offset, partition=partition))
        data = fetched.responses[0].partitions[0]
        assert data.error_code == 0
        if not data.records:
            return
        records = list(whole_batches(data.records))
        yield from records
        offset = records[-1].offset + 1


def whole_batches(data: bytes) -> Iterator[Record]:
    """The records of the batches that are whole."""
    position = 0
    while position + LOG_OVERHEAD <= len(data):
        end = position + LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + 12], "big")
        if end > len(data):
            return
        yield from read_records(data, position)
        position = end
