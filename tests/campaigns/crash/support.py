"""Helpers of the crash tests: kills at random moments, lost responses, and a look at all of a broker's data."""

import argparse
import logging
import os
import random
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.record_batch import LOG_OVERHEAD
from odradek.protocol.records import Record, read_records
from tests.broker_process import BrokerProcess
from tests.raw_client import RawClient, fetch_fields


def seeded(name: str) -> random.Random:
    """A source of randomness. Its seed is printed; put it in ``ODRADEK_CRASH_SEED`` to reproduce a failure."""
    seed = os.environ.get("ODRADEK_CRASH_SEED") or str(random.SystemRandom().getrandbits(32))
    print(f"{name}: ODRADEK_CRASH_SEED={seed}")
    return random.Random(f"{name} {seed}")


def run_with_kills(
    document: str,
    settings: Mapping[str, object],
    run: Callable[[Any, int], str],
    holds: str,
    clusters: Callable[[Path, Mapping[str, object]], AbstractContextManager[object]] | None = None,
) -> None:
    """A campaign's command: ``run`` a broker through ``--kills``, and print what that tells, and that ``holds`` after them.

    ``document`` is the module's docstring. With ``--brokers 3`` it is a cluster, if ``clusters`` makes one.
    """
    parser = argparse.ArgumentParser(description=document.split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=20)
    if clusters is not None:
        parser.add_argument("--brokers", type=int, choices=(1, 3), default=1)
    chosen = parser.parse_args()
    make = clusters if clusters is not None and chosen.brokers == 3 else _one_broker
    logging.disable()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as directory, make(Path(directory) / "broker", settings) as broker:
        print(run(broker, chosen.kills))
    print(f"{chosen.kills} kills in {time.monotonic() - started:.0f} s: {holds}")


def _one_broker(place: Path, settings: Mapping[str, object]) -> BrokerProcess:
    return BrokerProcess(place, settings=settings)


def rounds(kills: int, progress: Callable[[], int]) -> Iterator[int]:
    """A number for each kill: ``kills`` of them, and on a slow machine more, until more than ``kills`` steps are acknowledged."""
    for number in range(5 * kills):
        if number >= kills and progress() > kills:
            return
        yield number


def until_killed(broker: BrokerProcess, delay_s: float, step: Callable[[], None]) -> None:
    """Repeat ``step`` until the broker, which is killed (-9) after ``delay_s``, is gone."""
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


class LossyProxy:
    """A proxy between clients and a broker that advertises ``port``.

    A connection with traffic while ``loses_answers`` is set gets no further response; ``lost_bytes`` counts the bytes withheld.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.broker: BrokerProcess | None = None
        self.loses_answers = False
        self.lost_bytes = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                assert self.broker is not None
                broker = socket.create_connection((self.broker.host, self.broker.port))
            except OSError:
                client.close()
                continue
            threading.Thread(target=self._pump, args=(client, broker, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(broker, client, True), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, are_answers: bool) -> None:
        is_lossy = False
        with suppress(OSError):
            while data := source.recv(1 << 16):
                is_lossy = is_lossy or (are_answers and self.loses_answers)
                if is_lossy:
                    self.lost_bytes += len(data)
                else:
                    sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        # The pump that reads from the other end closes it.
        source.close()


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
    """The records of the complete batches."""
    position = 0
    while position + LOG_OVERHEAD <= len(data):
        end = position + LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + 12], "big")
        if end > len(data):
            return
        yield from read_records(data, position)
        position = end
