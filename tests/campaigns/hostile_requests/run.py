"""One broker under hostile requests, one after the other: what a second client saw, and what the broker's memory grew by."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.broker_process import BrokerProcess
from tests.campaigns.hostile_requests.cluster import PARTITIONS, set_up, with_producer
from tests.campaigns.hostile_requests.drawn import Hostile
from tests.campaigns.hostile_requests.kinds import draw
from tests.campaigns.hostile_requests.second_client import SecondClient, Stall
from tests.raw_client import RawClient

# One request may take this much, however small it is: what a batch may decompress to, 64 MiB, and what the allocator keeps.
FLOOR_BYTES = 72 * 1024 * 1024
TIMES_ITS_SIZE = 20
ANSWER_S = 120
# The broker may go on with a request that it has answered: it is looked at until the second client waits for so little.
_QUIET_MS = 15
_QUIET_S = 10
_LOOK_S = 0.1
MEBIBYTE = 1024 * 1024


class Outcome(NamedTuple):
    """What one hostile client did, got and caused. ``answered``: frames answered, of those sent before it was closed."""

    number: int
    kind: str
    told: str
    size_bytes: int
    answered: int
    took_s: float
    stall: Stall
    grown_bytes: int

    @property
    def times(self) -> float:
        """The growth of the broker's memory over what it may be: above 1 it is too much."""
        return self.grown_bytes / max(TIMES_ITS_SIZE * self.size_bytes, FLOOR_BYTES)


class Run:
    """A broker with a second client, while its ``with`` lasts."""

    def __init__(self, broker: BrokerProcess, partitions: int = PARTITIONS) -> None:
        self._broker = broker
        set_up(broker.host, broker.port, partitions)

    def control(self, second: SecondClient, duration_s: float) -> Stall:
        """What the second client sees where nobody is hostile."""
        second.worst()
        time.sleep(duration_s)
        return second.worst()

    def outcomes(self, second: SecondClient, seed: int, numbers: range, kinds: tuple[str, ...] = ()) -> Iterator[Outcome]:
        """Send what each of ``numbers`` draws. Raises AssertionError where the broker does not answer or is gone."""
        for number in numbers:
            kind, hostile = draw(seed, number, kinds)
            second.worst()
            before_bytes = self._reset_peak()
            began_s = time.monotonic()
            answered = self._send(hostile)
            took_s = time.monotonic() - began_s
            stall = self._until_quiet(second)
            grown_bytes = self._peak_bytes() - before_bytes
            size_bytes = sum(map(len, hostile.frames))
            yield Outcome(number, kind, hostile.told, size_bytes, answered, took_s, stall, grown_bytes)

    def _until_quiet(self, second: SecondClient) -> Stall:
        """The worst stall up to now, and of what goes on behind the answer."""
        worst = stall = second.worst()
        until_s = time.monotonic() + _QUIET_S
        while stall.broker_ms > _QUIET_MS and time.monotonic() < until_s:
            time.sleep(_LOOK_S)
            stall = second.worst()
            worst = max(worst, stall, key=lambda each: each.broker_ms)
        return worst

    def _send(self, hostile: Hostile) -> int:
        answered = 0
        with RawClient(self._broker.host, self._broker.port) as client:
            client.socket.settimeout(ANSWER_S)
            try:
                first = None
                for frame in hostile.frames:
                    client.socket.sendall(with_producer(frame, first))
                    answer = client.receive_frame()
                    if answer is None:
                        break
                    first = first or answer
                    answered += 1
            except (ConnectionError, BrokenPipeError):
                pass
            except TimeoutError as error:
                raise AssertionError(f"no answer in {ANSWER_S} s: {hostile.told}") from error
        assert self._broker.running, f"the broker is gone: {hostile.told}\n{self._broker.stderr[-2000:]}"
        return answered

    def _reset_peak(self) -> int:
        """Begin to measure the peak anew; the memory now."""
        Path(f"/proc/{self._broker.pid}/clear_refs").write_text("5")
        return self._status("VmRSS")

    def _peak_bytes(self) -> int:
        return self._status("VmHWM")

    def _status(self, name: str) -> int:
        for line in Path(f"/proc/{self._broker.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"no {name}")


def told(outcome: Outcome) -> str:
    """One line about it."""
    stall = outcome.stall
    return (
        f"#{outcome.number} {outcome.kind}: {outcome.told}, {outcome.size_bytes / MEBIBYTE:.1f} MiB:"
        f" stall {stall.broker_ms:.0f} ms (waited {stall.wall_ms:.0f}, loop at work {stall.busy_ms:.0f}, without processor"
        f" {max(stall.wall_ms - stall.ready_ms, 0):.0f}, disk {stall.disk_ms:.0f}, machine {stall.slowness:.1f} times as slow),"
        f" memory +{outcome.grown_bytes / MEBIBYTE:.0f} MiB, {outcome.took_s:.2f} s"
    )
