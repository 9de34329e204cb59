"""One broker under hostile requests, one after the other: what a second client saw, and what the broker's memory grew by."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.campaigns.hostile_requests import found
from tests.campaigns.hostile_requests.drawn import Hostile
from tests.campaigns.hostile_requests.kinds import draw
from tests.campaigns.hostile_requests.second_client import SecondClient, Stall, scheduled_s
from tests.campaigns.hostile_requests.sending import Fate, send

# One request may take this much, however small it is: what a batch may decompress to, 64 MiB, and what the allocator keeps.
FLOOR_BYTES = 72 * 1024 * 1024
TIMES_ITS_SIZE = 20
# So much may be left of it when it is answered: what the allocator keeps, and what the broker was to keep.
LEFT_BYTES = 72 * 1024 * 1024
# And so much of all of them.
ALL_LEFT_BYTES = 512 * 1024 * 1024
# Memory goes back with the work behind the answer, which others may have asked for and left.
_LEFT_S = 10
_WORK_S = 300
# The broker may go on with a request that it has answered: it is looked at until the second client waits for so little.
_QUIET_MS = 15
_QUIET_S = 10
_LOOK_S = 0.1
# A broker at work is ready to run all the time. One at rest is so for a part, as the second client asks: for two fifths on a
# busy machine, and in single tenths of a second for more.
_REST_S = 1.0
_AT_WORK = 0.8
MEBIBYTE = 1024 * 1024


class Broker(Protocol):
    """What is asked of a broker here: odradek's or Apache Kafka's."""

    host: str
    port: int

    @property
    def pid(self) -> int: ...

    @property
    def running(self) -> bool: ...


class BrokerGone(Exception):
    """A hostile request ended the broker, or the second client's connection."""


class Outcome(NamedTuple):
    """What one hostile request got and caused."""

    number: int
    kind: str
    told: str
    size_bytes: int
    allowed_bytes: int
    fate: Fate
    took_s: float
    stall: Stall
    peak_bytes: int
    grown_bytes: int
    left_bytes: int

    @property
    def times(self) -> float:
        """The growth of the broker's memory over what it may be, then or afterwards: above 1 it is too much."""
        return max(self.grown_bytes / self.allowed_bytes, self.left_bytes / LEFT_BYTES)


class Run:
    """Hostile requests to a broker that has what they find, beside a second client."""

    def __init__(self, broker: Broker, second: SecondClient) -> None:
        self._broker = broker
        self._second = second
        self._made: set[str] = set()
        # The broker's memory when it had answered nothing hostile, with what was made since.
        self._first_bytes = self._status("VmRSS")

    def control(self, duration_s: float) -> Stall:
        """What the second client sees where nobody is hostile."""
        self._second.worst()
        time.sleep(duration_s)
        return self._second.worst()

    def outcomes(self, seed: int, numbers: range, kinds: tuple[str, ...] = ()) -> Iterator[Outcome]:
        """Send what each of ``numbers`` draws. Raises BrokerGone if the broker ends."""
        for number in numbers:
            kind, hostile = draw(seed, number, kinds)
            yield self.outcome(number, kind, hostile)

    def make(self, hostile: Hostile) -> None:
        """Have what it needs there."""
        if hostile.needs is not None and hostile.needs not in self._made:
            before_bytes = self._status("VmRSS")
            found.make(self._broker.host, self._broker.port, hostile.needs)
            self._made.add(hostile.needs)
            self._until_quiet()
            self._first_bytes += self._status("VmRSS") - before_bytes

    def left_bytes(self) -> int:
        """How much more memory the broker has than at first, when it is at rest after all of them."""
        return self._until_small(self._first_bytes) - self._first_bytes

    def outcome(self, number: int, kind: str, hostile: Hostile) -> Outcome:
        """Make what it needs, send it, and look until the broker is at rest."""
        self.make(hostile)
        try:
            return self._measured(number, kind, hostile)
        except OSError as error:
            gone = "closed another client's connection" if self._broker.running else "has ended"
            raise BrokerGone(f"the broker {gone}") from error

    def _measured(self, number: int, kind: str, hostile: Hostile) -> Outcome:
        self._second.worst()
        before_bytes = self._reset_peak()
        began_s = time.monotonic()
        fate = send(self._broker.host, self._broker.port, hostile)
        took_s = time.monotonic() - began_s
        stall = self._until_quiet()
        left_bytes = self._until_small(before_bytes) - before_bytes
        stall = max(stall, self._second.worst(), key=lambda each: each.broker_ms)
        peak_bytes = self._status("VmHWM")
        size_bytes = hostile.size_bytes
        return Outcome(
            number=number,
            kind=kind,
            told=hostile.told,
            size_bytes=size_bytes,
            allowed_bytes=max(TIMES_ITS_SIZE * size_bytes, FLOOR_BYTES) + hostile.answers_bytes,
            fate=fate,
            took_s=took_s,
            stall=stall,
            peak_bytes=peak_bytes,
            grown_bytes=peak_bytes - before_bytes,
            left_bytes=left_bytes,
        )

    def _until_quiet(self) -> Stall:
        """The worst stall up to now, and of what goes on behind the answer."""
        worst = stall = self._second.worst()
        until_s = time.monotonic() + _QUIET_S
        while stall.broker_ms > _QUIET_MS and time.monotonic() < until_s:
            time.sleep(_LOOK_S)
            stall = self._second.worst()
            worst = max(worst, stall, key=lambda each: each.broker_ms)
        return worst

    def _until_small(self, before_bytes: int) -> int:
        """The broker's memory, once it is what it was or may be, or the broker has been at rest for long."""
        until_s, rested_s = time.monotonic() + _WORK_S, 0.0
        began_s, ready_s = time.monotonic(), self._ready_s()
        while (now_bytes := self._status("VmRSS")) - before_bytes > LEFT_BYTES:
            time.sleep(_LOOK_S)
            now_s = time.monotonic()
            if now_s - began_s >= _REST_S:
                is_at_work = self._ready_s() - ready_s > _AT_WORK * (now_s - began_s)
                rested_s = 0.0 if is_at_work else rested_s + now_s - began_s
                began_s, ready_s = now_s, self._ready_s()
            if rested_s > _LEFT_S or now_s > until_s:
                break
        return now_bytes

    def _ready_s(self) -> float:
        """How long the broker's loop has run, or waited for a processor."""
        return sum(scheduled_s(str(self._broker.pid)))

    def _reset_peak(self) -> int:
        """Begin to measure the peak anew; the memory now."""
        Path(f"/proc/{self._broker.pid}/clear_refs").write_text("5")
        return self._status("VmRSS")

    def _status(self, name: str) -> int:
        """A size of the broker's memory. Raises ProcessLookupError if it has ended."""
        for line in Path(f"/proc/{self._broker.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise ProcessLookupError(f"no {name}")


def told(outcome: Outcome) -> str:
    """One line about it."""
    stall = outcome.stall
    return (
        f"#{outcome.number} {outcome.kind}: {outcome.told}, {outcome.size_bytes / MEBIBYTE:.1f} MiB:"
        f" stall {stall.broker_ms:.0f} ms (waited {stall.wall_ms:.0f}, loop at work {stall.busy_ms:.0f}, without processor"
        f" {max(stall.wall_ms - stall.ready_ms, 0):.0f}, disk {stall.disk_ms:.0f}, machine {stall.slowness:.1f} times as slow),"
        f" memory +{outcome.grown_bytes / MEBIBYTE:.0f} MiB, left {outcome.left_bytes / MEBIBYTE:+.0f} MiB,"
        f" {outcome.fate.told}, {outcome.took_s:.2f} s"
    )


def row(outcome: Outcome, limit_ms: float) -> str:
    """One line about a scenario."""
    stall = outcome.stall
    peak, grown, allowed, left = (
        each / MEBIBYTE for each in (outcome.peak_bytes, outcome.grown_bytes, outcome.allowed_bytes, outcome.left_bytes)
    )
    return (
        f"{outcome.kind}: another client waited {stall.broker_ms:.0f} ms for the broker, of {limit_ms:.0f}"
        f" ({stall.wall_ms:.0f} with waits for the machine), memory peak {peak:.0f} MiB (+{grown:.0f} of {allowed:.0f}),"
        f" left {left:+.0f} MiB, asked {outcome.size_bytes} bytes, {outcome.fate.told}, {outcome.took_s:.1f} s"
    )
