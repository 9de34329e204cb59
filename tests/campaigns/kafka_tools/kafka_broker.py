"""Consecutive runs of Apache Kafka's own broker, each in a JVM and stopped by SIGTERM.

A run begins with an empty data directory, or with a copy of one that another run, or odradek, has left.
"""

import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from benchmarks import processes
from benchmarks.peers import Kafka, spawn, tail

if TYPE_CHECKING:
    import subprocess

TIMEOUT_S = 60.0
SMALLEST_SEGMENT_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class KafkaRun:
    """A broker that serves on ``address``; ``data`` is its data directory, and stays when it has stopped."""

    address: str
    data: Path


class KafkaRuns:
    """``scratch`` takes the data directories, each in a directory of the name that is given to the run."""

    def __init__(self, scratch: Path) -> None:
        template = scratch / "template"
        template.mkdir(parents=True)
        self._scratch = scratch
        self._kafka = Kafka(template)

    @contextmanager
    def serving(self, name: str, settings: Mapping[str, str], data: Path | None = None) -> Iterator[KafkaRun]:
        """Run Kafka until the end of the ``with`` block, when it is stopped; on a copy of ``data`` if that is given."""
        directory = self._scratch / name
        directory.mkdir()
        command = self._kafka.prepare(directory, settings)
        if data is not None:
            shutil.rmtree(directory / "data")
            shutil.copytree(data, directory / "data")
        process = spawn(command, directory)
        try:
            address = self._kafka.address(process, directory)
            until(lambda: process.poll() is not None or accepts(address))
            if process.poll() is not None:
                raise AssertionError(tail(directory))
            yield KafkaRun(address, directory / "data")
            process.terminate()
            process.wait(TIMEOUT_S)
        finally:
            processes.end(process)


def until(condition: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> None:
    """Wait for it; TimeoutError."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(condition)
        time.sleep(0.03)


def end_process(process: "subprocess.Popen[str]", number: int | None) -> int:
    """Send signal ``number``, unless it is None, and reap the process; its exit status. subprocess.TimeoutExpired."""
    if number is not None:
        process.send_signal(number)
    try:
        return process.wait(TIMEOUT_S)
    finally:
        processes.end(process)


def commit(consumer: Consumer, offsets: list[TopicPartition]) -> None:
    """Commit offsets; again where Kafka's coordinator has not yet been told of a topic that its broker serves already."""

    def is_committed() -> bool:
        try:
            consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as refused:
            if refused.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            return False
        return True

    until(is_committed)


def accepts(address: str) -> bool:
    """Whether somebody listens there."""
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
    except OSError:
        return False
    return True
