"""The client next to the hostile one, in a process of its own: a small Metadata and a small Produce, over and over.

It measures how long each of them takes. Time in which the broker, or this process, was ready to run and the machine ran others is
measured as well (``schedstat``), so that a busy machine is not taken for a broker that stands still.

    python -m tests.campaigns.hostile_requests.second_client PORT BROKER_PID TOPIC

For each line of input it prints the worst since the last one, in milliseconds: as it was, and without the wait for a processor.
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
_ANSWER_S = 120


class Stall(NamedTuple):
    """The worst answer of a time: how long it took, and without what the machine took for others."""

    wall_ms: float
    broker_ms: float


class SecondClient:
    """That process, while its ``with`` lasts."""

    def __init__(self, port: int, broker_pid: int, topic: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(port), str(broker_pid), topic],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
            env=command_environment(),
        )
        self.worst()

    def worst(self) -> Stall:
        """The worst since the last call."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        wall_ms, broker_ms = map(float, self._process.stdout.readline().split())
        return Stall(wall_ms, broker_ms)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()


def _waited_s(pid: str) -> float:
    """How long a process's main thread has waited for a processor."""
    try:
        return (
            int(Path(f"/proc/{pid}/task/{pid}/schedstat" if pid != "self" else "/proc/self/schedstat").read_text().split()[1])
            / 1e9
        )
    except (OSError, IndexError):
        return 0.0


def main(port: int, broker_pid: str, topic: str) -> None:
    """Until the input ends."""
    records = build_batch([Record(timestamp=0, value=b"v")])
    requests = (
        encode_request(ApiKey.METADATA, 9, topics=[{"name": topic}], allow_auto_topic_creation=False),
        encode_request(ApiKey.PRODUCE, 9, **produce_fields(topic, records, acks=1)),
    )
    worst = Stall(0, 0)
    with RawClient("127.0.0.1", port) as client:
        client.socket.settimeout(_ANSWER_S)
        while True:
            for request in requests:
                waited_s = _waited_s(broker_pid) + _waited_s("self")
                began_s = time.perf_counter()
                client.socket.sendall(request)
                if client.receive_frame() is None:
                    return
                took_s = time.perf_counter() - began_s
                waited_s = _waited_s(broker_pid) + _waited_s("self") - waited_s
                worst = Stall(max(worst.wall_ms, took_s * 1000), max(worst.broker_ms, (took_s - waited_s) * 1000))
            if select.select([sys.stdin], [], [], _PAUSE_S)[0]:
                if not sys.stdin.readline():
                    return
                print(*worst, flush=True)
                worst = Stall(0, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
