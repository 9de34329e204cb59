"""The client next to the hostile one, in a process of its own: a small Metadata and a small Produce, over and over.

It measures how long each of them takes, how much of that the broker's loop computed, and how long the broker or this process was
ready to run while the machine ran others (``schedstat``). Another process measures the machine (``machine``): how long it takes
to write a small file, and to compute what is always the same. So a busy machine is not taken for a broker that stands still.

    python -m tests.campaigns.hostile_requests.second_client PORT BROKER_PID TOPIC

For each line of input it prints the worst since the last one, in milliseconds.
"""

import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.records import Record, build_batch
from tests.broker_process import REPOSITORY, command_environment
from tests.raw_client import RawClient, encode_request, produce_fields

_PAUSE_S = 0.001
_ANSWER_S = 600
# Files that the broker may write in a slice of its time; each may take as long as the worst write.
_WRITES = 4


class Stall(NamedTuple):
    """The worst answers of a time, in milliseconds.

    ``wall_ms`` the longest; ``ready_ms`` the longest without waits for a processor; ``busy_ms`` the most that the broker's loop
    computed before one answer. ``disk_ms`` and ``slowness`` are the machine's: its worst write, and how many times the least a
    computation took.
    """

    wall_ms: float
    ready_ms: float
    busy_ms: float
    disk_ms: float = 0
    slowness: float = 1

    @property
    def broker_ms(self) -> float:
        """What is the broker's own: its computation on a machine at rest, and waits that the disk does not account for."""
        waited_ms = max(self.ready_ms - self.busy_ms - _WRITES * self.disk_ms, 0)
        return (self.busy_ms + waited_ms) / self.slowness


class Observer:
    """A process that measures and prints what it has for each line it gets, while its ``with`` lasts."""

    def __init__(self, module: str, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
            env=command_environment(),
        )
        self.worst()

    def worst(self) -> list[float]:
        """The worst since the last call."""
        self.ask()
        return self.answer()

    def ask(self) -> None:
        """Have it print; ``answer`` follows. Raises ConnectionError if it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def answer(self) -> list[float]:
        """What it prints. Raises ConnectionError if it has ended, as it does when the broker is gone."""
        assert self._process.stdout is not None
        words = self._process.stdout.readline().split()
        if not words:
            raise ConnectionResetError("the process that observes has ended")
        return [float(word) for word in words]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()


class SecondClient:
    """Those two processes, while its ``with`` lasts."""

    def __init__(self, port: int, broker_pid: int, topic: str, directory: Path) -> None:
        self._client = Observer(__name__, port, broker_pid, topic)
        self._machine = Observer("tests.campaigns.hostile_requests.machine", directory)

    def worst(self) -> Stall:
        """The worst since the last call."""
        self._machine.ask()
        client = self._client.worst()
        return Stall(*client, *self._machine.answer())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        for each in (self._client, self._machine):
            each.__exit__(kind, error, traceback)


def scheduled_s(pid: str) -> tuple[float, float]:
    """How long a process's main thread has run, and how long it has waited for a processor."""
    try:
        ran, waited, _ = (
            Path(f"/proc/{pid}/task/{pid}/schedstat" if pid != "self" else "/proc/self/schedstat").read_text().split()
        )
    except (OSError, ValueError):
        return 0.0, 0.0
    return int(ran) / 1e9, int(waited) / 1e9


def main(port: int, broker_pid: str, topic: str) -> None:
    """Until the input ends."""
    records = build_batch([Record(timestamp=0, value=b"v")])
    requests = (
        encode_request(ApiKey.METADATA, 9, topics=[{"name": topic}], allow_auto_topic_creation=False),
        encode_request(ApiKey.PRODUCE, 9, **produce_fields(topic, records, acks=1)),
    )
    worst = (0.0, 0.0, 0.0)
    with RawClient("127.0.0.1", port) as client:
        client.socket.settimeout(_ANSWER_S)
        while True:
            for request in requests:
                ran_s, waited_s = scheduled_s(broker_pid)
                own_s = scheduled_s("self")[1]
                began_s = time.perf_counter()
                client.socket.sendall(request)
                if client.receive_frame() is None:
                    return
                took_s = time.perf_counter() - began_s
                ran_until_s, waited_until_s = scheduled_s(broker_pid)
                # While this process waits for a processor its answer is there: the broker works for others by then.
                stood_s = took_s - (scheduled_s("self")[1] - own_s)
                measured = (took_s, stood_s - (waited_until_s - waited_s), min(ran_until_s - ran_s, stood_s))
                worst = tuple(max(had, 1000 * has) for had, has in zip(worst, measured, strict=True))
            if select.select([sys.stdin], [], [], _PAUSE_S)[0]:
                if not sys.stdin.readline():
                    return
                print(*worst, flush=True)
                worst = (0.0, 0.0, 0.0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
