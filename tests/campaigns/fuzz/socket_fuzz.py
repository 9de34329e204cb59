"""Mutated and valid requests of every served API to a real broker over many connections, beside a working client.

    python -m tests.campaigns.fuzz.socket_fuzz --frames 20000 --seed 1

An ApiVersions request follows each frame. Its response shows that the frame has been handled. The connection may close instead.
If no response comes (the frame's length swallowed the request, or a Fetch waits), the connection is given up. The frames create
topics, which are deleted from time to time; the generator cannot produce the names of the client's topics.

The broker may not log an unhandled exception, grow beyond a bound, answer the client with an error or lose one of its records.
"""

import argparse
import asyncio
import contextlib
import random
import re
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import read_records
from tests.broker_process import BrokerProcess
from tests.campaigns.fuzz.frames import aimed_frames, frame_of_spoilt_batch, memory_kib, mutated, random_batch, valid_frames
from tests.raw_client import MAX_BYTES, RawClient, encode_request, fetch_fields

CLIENT_TOPIC = "working-client"
# The target of frames in which only the batch is mutated (frames.frame_of_spoilt_batch).
TARGET_TOPIC = "t"
_PAUSE_S = 0.002
_RECORDS_A_BATCH = 3


class WorkingClient:
    """Produces, and fetches its own records, in a thread; once stopped it reports errors."""

    def __init__(self, client: RawClient, topic: str = CLIENT_TOPIC) -> None:
        self._client = client
        self._topic = topic
        self._client.call(ApiKey.CREATE_TOPICS, 7, topics=[{"name": topic, "num_partitions": 1, "replication_factor": 1}])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._stopping = threading.Event()
        self._values: list[bytes] = []
        self._fetched = 0
        self.operations = 0
        self.errors: list[str] = []

    @property
    def acknowledged(self) -> int:
        """The number of records that the broker has taken."""
        return len(self._values)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the operation under way, and stop."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def close(self) -> None:
        """Leave the broker."""
        self._client.socket.close()

    def check_every_record(self) -> None:
        """AssertionError unless every acknowledged record is fetched, in order and once."""
        found: list[bytes] = []
        while len(found) < len(self._values):
            values = self._fetch(len(found))
            assert values, f"the client's records end at {len(found)} of {len(self._values)}"
            found += values
        assert found == self._values

    def _run(self) -> None:
        try:
            while not self._stopping.wait(_PAUSE_S):
                self._work()
        except (OSError, AssertionError) as error:
            self.errors.append(f"{type(error).__name__}: {error}")

    def _work(self) -> None:
        end = len(self._values)
        values = [b"record %d" % number for number in range(end, end + _RECORDS_A_BATCH)]
        answer = self._client.produce(self._topic, *values)
        assert answer.error_code == 0, answer
        assert answer.base_offset == end, answer
        self._values += values
        fetched = self._fetch(end)
        assert fetched == values, f"{fetched} at offset {end}"
        self.operations += 2

    def _fetch(self, offset: int) -> list[bytes]:
        response = self._client.call(ApiKey.FETCH, 12, **fetch_fields(self._topic, offset))
        (partition,) = response.responses[0].partitions
        assert partition.error_code == 0, partition
        data = partition.records
        records = [record for position, _ in iter_batches(data) for record in read_records(data, position, limit_bytes=MAX_BYTES)]
        return [bytes(record.value) for record in records if record.offset >= offset]


def clean_topics(client: RawClient) -> int:
    """Delete every topic but the client's, and create a new target for mutated batches; returns the number deleted."""
    topics = client.call(ApiKey.METADATA, 12, topics=None).topics
    ids = [topic.topic_id for topic in topics if topic.name != CLIENT_TOPIC and not topic.is_internal]
    client.call(ApiKey.DELETE_TOPICS, 6, topics=[{"name": None, "topic_id": topic_id} for topic_id in ids])
    client.call(ApiKey.CREATE_TOPICS, 7, topics=[{"name": TARGET_TOPIC, "num_partitions": 1, "replication_factor": 1}])
    return len(ids)


_CONNECTIONS = 8
_FRAMES_A_CONNECTION = 25
_SILENCE_S = 0.05
_CLEAN_EVERY_FRAMES = 1_000
_SPOILT_BATCH_EVERY = 5
_SPOILT_STREAM_SHARE = 0.05
_WHOLE_SHARE = 0.25
_AIMED_SHARE = 0.3
_MAX_GROWTH_KIB = 16 * 1024
# By then each decoder and encoder is compiled: growth is counted from here. A short run has not compiled them all.
_WARM_UP_FRAMES = 4_000
_MAX_GROWTH_OF_A_SHORT_RUN_KIB = 48 * 1024
_FRAMES_A_SECOND_AT_LEAST = 50
_SENTINEL_CORRELATION_ID = 0x5E2711E1
_SENTINEL = encode_request(ApiKey.API_VERSIONS, 0, _SENTINEL_CORRELATION_ID)
_SENTINEL_ANSWER = _SENTINEL_CORRELATION_ID.to_bytes(4, "big")
_FAULT = re.compile(r"Traceback|a request failed")
_PEER = re.compile(r"127\.0\.0\.1:(\d+)")


class Failure(Exception):
    """The broker violated one of the rules."""


class Fuzzer:
    """Sends the frames numbered from ``first``; the content of each depends on ``seed`` and its number alone."""

    def __init__(self, broker: BrokerProcess, seed: int, first: int, frames: int) -> None:
        self._broker = broker
        self._seed = seed
        self._numbers = iter(range(first, first + frames))
        self._corpus = valid_frames(random.Random(seed), each=4)
        self._aimed = aimed_frames(TARGET_TOPIC)
        rng = random.Random(seed)
        self._batches = [random_batch(rng) for _ in range(100)]
        self.count: Counter[str] = Counter()
        # The frames that each local port has sent, which is how the broker's log names a connection.
        self.sent_from: dict[int, list[int]] = {}
        self._warm_kib = 0

    def stream(self, number: int) -> bytes:
        """Frame ``number`` with its length in front."""
        rng = random.Random(self._seed << 32 | number)
        if number % _SPOILT_BATCH_EVERY == 0:
            frame = frame_of_spoilt_batch(self._batches, rng)
        else:
            frame = rng.choice(self._aimed if rng.random() < _AIMED_SHARE else self._corpus)
            if rng.random() >= _WHOLE_SHARE:
                frame = mutated(frame, self._corpus, rng)
        stream = len(frame).to_bytes(4, "big") + frame
        return mutated(stream, [frame], rng) if rng.random() < _SPOILT_STREAM_SHARE else stream

    async def send_all(self) -> None:
        """Send every frame. Raises Failure where the broker ends or takes no more connections."""
        await asyncio.gather(*(self._send_over_connections() for _ in range(_CONNECTIONS)))

    async def _send_over_connections(self) -> None:
        while (number := next(self._numbers, None)) is not None:
            try:
                reader, writer = await asyncio.open_connection(self._broker.host, self._broker.port)
            except OSError as error:
                raise Failure(f"no connection to the broker: {error}") from error
            numbers = self.sent_from.setdefault(writer.get_extra_info("sockname")[1], [])
            try:
                await self._send_over_one(reader, writer, number, numbers)
            finally:
                writer.transport.abort()

    async def _send_over_one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int | None, numbers: list[int]
    ) -> None:
        for _ in range(_FRAMES_A_CONNECTION):
            if number is None:
                return
            numbers.append(number)
            outcome = await self._outcome(reader, writer, self.stream(number))
            self.count["frames sent"] += 1
            self.count[outcome] += 1
            if self.count["frames sent"] == _WARM_UP_FRAMES:
                self._warm_kib = memory_kib(self._broker.pid)
            if self.count["frames sent"] % _CLEAN_EVERY_FRAMES == 0:
                await asyncio.to_thread(self._clean)
            if outcome != "frames dealt with":
                return
            number = next(self._numbers, None)

    async def _outcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stream: bytes) -> str:
        try:
            writer.write(stream + _SENTINEL)
            async with asyncio.timeout(_SILENCE_S):
                while True:
                    size = int.from_bytes(await reader.readexactly(4), "big")
                    if (await reader.readexactly(size)).startswith(_SENTINEL_ANSWER):
                        return "frames dealt with"
        except TimeoutError:
            return "connections given up, as nothing came"
        except (asyncio.IncompleteReadError, ConnectionError):
            return "connections closed by the broker"

    def _clean(self) -> None:
        with RawClient(self._broker.host, self._broker.port) as client:
            self.count["topics deleted again"] += clean_topics(client)

    def check_memory(self, started_kib: int) -> str:
        """How much memory the broker has, in words. Raises Failure where it grew too much."""
        ended_kib = memory_kib(self._broker.pid)
        if self._warm_kib:
            bound_kib, growth_kib, since = _MAX_GROWTH_KIB, ended_kib - self._warm_kib, f"{_WARM_UP_FRAMES} frames"
        else:
            bound_kib, growth_kib, since = _MAX_GROWTH_OF_A_SHORT_RUN_KIB, ended_kib - started_kib, "the start"
        memory = f"memory (PSS): {started_kib} KiB before, {ended_kib} KiB after; {growth_kib} KiB since {since}, of {bound_kib}"
        if growth_kib > bound_kib:
            raise Failure(memory)
        return memory

    def check_log(self) -> None:
        """Raises Failure, with the frames that may have done it, where the broker has logged an unhandled exception."""
        faults = [line for line in self._broker.stderr.splitlines() if _FAULT.search(line)]
        if faults:
            ports = {int(port) for line in faults for port in _PEER.findall(line)}
            numbers = sorted(number for port in ports for number in self.sent_from.get(port, []))
            raise Failure(f"unhandled exceptions {len(faults)}, by some of the frames {numbers}; the first:\n{faults[0]}")


def fuzz(broker: BrokerProcess, seed: int, first: int, frames: int) -> None:
    """Send the frames and report on stdout. Raises Failure."""
    with RawClient(broker.host, broker.port) as client:
        clean_topics(client)
    fuzzer = Fuzzer(broker, seed, first, frames)
    with contextlib.closing(WorkingClient(RawClient(broker.host, broker.port))) as client:
        _fuzz_beside(client, fuzzer, broker, frames)


def _fuzz_beside(client: WorkingClient, fuzzer: Fuzzer, broker: BrokerProcess, frames: int) -> None:
    started_kib = memory_kib(broker.pid)
    try:
        client.start()
        with _no_longer_than(10 + frames / _FRAMES_A_SECOND_AT_LEAST) as limit_s:
            asyncio.run(asyncio.wait_for(fuzzer.send_all(), limit_s))
    finally:
        client.stop()
    for name, count in sorted(fuzzer.count.items()):
        print(f"{count:>10}  {name}")
    print(
        f"{client.operations:>10}  client's operations, errors {len(client.errors)}, records acknowledged {client.acknowledged}"
    )
    fuzzer.check_log()
    print(f"{0:>10}  unhandled exceptions in the broker's log")
    if client.errors:
        raise Failure(f"the client: {client.errors[0]}")
    client.check_every_record()
    print(fuzzer.check_memory(started_kib))


@contextlib.contextmanager
def _no_longer_than(seconds: float) -> Iterator[float]:
    try:
        yield seconds
    except TimeoutError:
        raise Failure(f"the frames took more than {seconds:.0f} s") from None


def main() -> int:
    """Fuzz, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--first", type=int, default=0, help="number of the first frame")
    arguments = parser.parse_args()
    print(f"{arguments.frames} frames to a live broker, seed {arguments.seed}, target topic {TARGET_TOPIC!r}", flush=True)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        broker = BrokerProcess(Path(directory) / "broker", settings={"num.partitions": 1})
        try:
            with broker:
                fuzz(broker, arguments.seed, arguments.first, arguments.frames)
        except (Failure, AssertionError):
            traceback.print_exc()
            print(f"the broker's log ends with\n{broker.stderr[-2_000:]}\nfailures 1; again with", file=sys.stderr)
            again = f"--frames {arguments.frames} --seed {arguments.seed} --first {arguments.first}"
            print(f"    python -m tests.campaigns.fuzz.socket_fuzz {again}", file=sys.stderr)
            return 1
    print(f"{arguments.frames} frames, failures 0, {time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
