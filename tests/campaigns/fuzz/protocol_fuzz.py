"""Mutated requests of every served API through frames, headers, bodies and record batches.

    python -m tests.campaigns.fuzz.protocol_fuzz --frames 1000000 --seed 1

Only MalformedMessage and KafkaError may be raised, no frame may take a second of CPU time, and memory may not grow. A child
process with a limited address space does the work: an allocation by a length that the frame only claims ends it, as does an
abort in native code. Either way the parent names the frame and the command that sends it again.
"""

import argparse
import mmap
import os
import random
import resource
import sys
import time
import traceback
from collections import Counter
from typing import Any

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import request_decoder
from odradek.protocol.errors import KafkaError, MalformedMessage
from odradek.protocol.frames import FrameReader, read_request_header
from odradek.protocol.record_batch import Buffer, iter_batches, read_header, validate
from odradek.protocol.records import read_records
from tests.campaigns.fuzz.frames import (
    address_space_bytes,
    frame_of_spoilt_batch,
    mutated,
    random_batch,
    resident_kib,
    served_versions,
    valid_frame,
    valid_frames,
)

_MAX_FRAME_BYTES = 1 << 20
_MAX_BATCH_BYTES = 1 << 20
_ADDRESS_SPACE_BYTES = 512 << 20
_MAX_GROWTH_KIB = 8 * 1024
_MAX_CPU_SECONDS = 1.0
# By then each decoder is compiled and every cache is full; growth is measured from here.
_WARM_UP_SHARE = 10
_SPOILT_BATCH_EVERY = 5


class Failure(Exception):
    """An untyped error was raised, or a frame took too long."""


class Outcomes:
    """How often each stage was reached, and how it ended."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.slowest_cpu_seconds = 0.0


def run(seed: int, first: int, frames: int, progress: Any) -> Outcomes:
    """Send the frames numbered from ``first``; raises ``Failure`` at the first that fails.

    ``progress``, memory that the parent sees, holds the number of the frame under way.
    """
    rng = random.Random(seed)
    corpus = valid_frames(rng, each=4)
    batches = [random_batch(rng) for _ in range(100)]
    outcomes = Outcomes()
    for frame in corpus:
        _check(frame, outcomes, must_decode=True)
    _check_edges(outcomes)
    before_kib = 0
    for number in range(first, first + frames):
        progress[:8] = number.to_bytes(8, "big")
        rng.seed(seed << 32 | number)
        if number % _SPOILT_BATCH_EVERY == 0:
            frame = frame_of_spoilt_batch(batches, rng)
        else:
            frame = mutated(rng.choice(corpus), corpus, rng)
        _send(frame, rng, outcomes)
        if number - first == frames // _WARM_UP_SHARE:
            before_kib = resident_kib()
    growth_kib = resident_kib() - before_kib
    print(f"memory: {before_kib} KiB after a tenth, {before_kib + growth_kib} KiB at the end, growth {growth_kib} KiB")
    if growth_kib > _MAX_GROWTH_KIB:
        raise Failure(f"memory grew by {growth_kib} KiB")
    return outcomes


def _send(frame: bytes, rng: random.Random, outcomes: Outcomes) -> None:
    """Put the frame on a stream, in two pieces, sometimes with a mutated length; check all frames that the stream returns."""
    stream = len(frame).to_bytes(4, "big") + frame
    if rng.random() < 0.05:
        stream = mutated(stream, [frame], rng)
    reader = FrameReader(_MAX_FRAME_BYTES)
    split = rng.randrange(len(stream) + 1)
    started = time.process_time()
    try:
        for found in reader.feed(stream[:split]) + reader.feed(stream[split:]):
            _check(found, outcomes)
    except MalformedMessage:
        outcomes.count["frames refused"] += 1
    except BaseException as error:
        raise Failure(f"{type(error).__mro__[0]!r} out of a frame of {len(frame)} bytes: {frame[:200].hex()}") from error
    cpu_seconds = time.process_time() - started
    outcomes.slowest_cpu_seconds = max(outcomes.slowest_cpu_seconds, cpu_seconds)
    if cpu_seconds > _MAX_CPU_SECONDS:
        raise Failure(f"a frame of {len(frame)} bytes took {cpu_seconds:.2f} s: {frame[:200].hex()}")


def _check(frame: bytes, outcomes: Outcomes, *, must_decode: bool = False) -> None:
    """A frame as dispatch and the Produce handler take it apart."""
    try:
        key, version, _, _, position = read_request_header(frame)
    except MalformedMessage:
        outcomes.count["headers refused"] += 1
        return
    if not _is_served(key, version):
        outcomes.count["headers of nothing served"] += 1
        return
    try:
        request = request_decoder(ApiKey(key), version)(frame, position)
    except MalformedMessage as error:
        if must_decode or isinstance(error.__context__, MemoryError | RecursionError):
            raise Failure(f"{ApiKey(key).name} v{version}: {error.reason}") from error
        outcomes.count["bodies refused"] += 1
        return
    outcomes.count["bodies decoded"] += 1
    if key == ApiKey.PRODUCE:
        for _topic, partitions in request.topics:
            for _index, records in partitions:
                if records is not None:
                    _check_records(records, outcomes)


def _check_records(records: Buffer, outcomes: Outcomes) -> None:
    try:
        validate(read_header(records), records)
        outcomes.count["batches valid"] += 1
    except (KafkaError, MalformedMessage):
        outcomes.count["batches invalid"] += 1
    try:
        for position, _ in iter_batches(records):
            for _record in read_records(records, position, limit_bytes=_MAX_BATCH_BYTES):
                outcomes.count["records read"] += 1
    except MalformedMessage:
        outcomes.count["batches refused"] += 1


def _is_served(key: int, version: int) -> bool:
    served = SERVED.get(key)  # type: ignore[call-overload]
    return served is not None and served.min_version <= version <= served.max_version


def _check_edges(outcomes: Outcomes) -> None:
    """Every decoder, compiled here, is shown an empty body, a body of ones and one cut at every byte."""
    for key, version in served_versions():
        frame = valid_frame(key, version, random.Random(0))
        position = read_request_header(frame)[4]
        for spoilt in (frame[:position], frame[:position] + b"\xff" * 64, *(frame[:end] for end in range(position, len(frame)))):
            _check(spoilt, outcomes)


def _work(arguments: argparse.Namespace, progress: mmap.mmap) -> int:
    """The child's part: its exit status."""
    limit = address_space_bytes() + _ADDRESS_SPACE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    started = time.perf_counter()
    try:
        outcomes = run(arguments.seed, arguments.first, arguments.frames, progress)
    except Failure:
        traceback.print_exc()
        return 1
    for name, count in sorted(outcomes.count.items()):
        print(f"{count:>10}  {name}")
    elapsed = time.perf_counter() - started
    print(f"slowest frame {outcomes.slowest_cpu_seconds * 1000:.1f} ms of CPU time; {elapsed:.0f} s in all")
    return 0


def main() -> int:
    """Fuzz, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--first", type=int, default=0, help="number of the first frame")
    arguments = parser.parse_args()
    print(f"{arguments.frames} frames, seed {arguments.seed}", flush=True)
    progress = mmap.mmap(-1, 8)
    child = os.fork()
    if child == 0:
        status = _work(arguments, progress)
        sys.stdout.flush()
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 0:
        print(f"{arguments.frames} frames, failures 0")
        return 0
    number = int.from_bytes(progress[:8], "big")
    print(f"failures 1: frame {number} (exit status {status}); again with", file=sys.stderr)
    print(
        f"    python -m tests.campaigns.fuzz.protocol_fuzz --seed {arguments.seed} --first {number} --frames 1", file=sys.stderr
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
