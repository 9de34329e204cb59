"""One broker under hostile requests, one after the other: what a second client saw, and what the broker's memory grew by."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from odradek.protocol.api_keys import ApiKey
from tests.broker_process import BrokerProcess
from tests.campaigns.hostile_requests.kinds import KNOWN, Hostile, draw
from tests.campaigns.hostile_requests.second_client import SecondClient, Stall
from tests.raw_client import RawClient

# One request may take this much, however small it is: the answer's own objects, and what the allocator keeps.
FLOOR_BYTES = 64 * 1024 * 1024
TIMES_ITS_SIZE = 20
ANSWER_S = 60
_MIB = 1024 * 1024


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

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        with RawClient(broker.host, broker.port) as client:
            topic = {"name": KNOWN, "num_partitions": 10, "replication_factor": 1, "assignments": [], "configs": []}
            client.call(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=10_000)
            for key_type in (0, 1):
                client.call(ApiKey.FIND_COORDINATOR, 3, key=KNOWN, key_type=key_type)
            for name in (KNOWN, "a" * 26, "a" * 40, "a" * 1_000):
                client.call(ApiKey.INIT_PRODUCER_ID, 3, transactional_id=name, transaction_timeout_ms=60_000)

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
            grown_bytes = self._peak_bytes() - before_bytes
            size_bytes = sum(map(len, hostile.frames))
            yield Outcome(number, kind, hostile.told, size_bytes, answered, took_s, second.worst(), grown_bytes)

    def _send(self, hostile: Hostile) -> int:
        answered = 0
        with RawClient(self._broker.host, self._broker.port) as client:
            client.socket.settimeout(ANSWER_S)
            try:
                for frame in hostile.frames:
                    client.socket.sendall(frame)
                    if client.receive_frame() is None:
                        break
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
    return (
        f"#{outcome.number} {outcome.kind}: {outcome.told}, {outcome.size_bytes / _MIB:.1f} MiB:"
        f" stall {outcome.stall.broker_ms:.0f} ms ({outcome.stall.wall_ms:.0f} with waits for a processor),"
        f" memory +{outcome.grown_bytes / _MIB:.0f} MiB, {outcome.took_s:.2f} s"
    )
