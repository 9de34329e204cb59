"""The staff: the tellers' processes, which are killed, frozen and replaced.

A teller that makes no step is stuck, see ``patience``: a violation, except for kafka-python.

A teller may also end by itself, or have to abort a transaction because a request was refused: clients do, where a broker is
killed under them. Such excuses are bounded. The tellers of one desk may not end by themselves again and again between two kills
of the broker, and each make may have an excuse for every fourth kill or freeze, see ``require_bounded``.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import IO, TYPE_CHECKING, Self

from tests.broker_process import command_environment
from tests.campaigns.soak.bank import MAKES
from tests.campaigns.soak.books import require
from tests.campaigns.soak.patience import Silence
from tests.campaigns.soak.teller import LONGEST_SILENCE_S, Told

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from tests.campaigns.soak.patience import ServedClock
    from tests.campaigns.soak.report import Costs
    from tests.campaigns.soak.settings import Pace

TELLERS_A_MAKE = 2
LONGEST_VACANCY_S = 1.0
# By the served clock. A hanging kafka-python teller (see ``Staff.hangs``) stays in its group and holds up its rebalances: two in
# a row must be found and replaced well within the time in which each partition makes progress. All of these exceed the longest
# justified wait: 5 s for a killed teller's transaction, 4 s frozen, rebalances that begin anew after each kill of the broker.
HANG_TIMEOUT_S = {"librdkafka": 30.0, "kafka-python": 15.0, "aiokafka": 30.0}
LOOK_INTERVAL_S = 0.5
STOP_INTERVAL_S = 0.05
# The share of successors with a new transactional id. The others continue with the id of their predecessor.
OTHER_NAME = 0.3
FREEZE = 0.2
MOST_ENDS_A_KILL = 3
# The excuses of each make: a few, and a share of the kills and freezes.
FREE_EXCUSES = 6
EXCUSES_A_HARM = 0.25
HUNG = "hung"


@dataclass(slots=True)
class Desk:
    """A place for one teller at a time."""

    make: str
    index: int
    lives: int = 0
    transactional_id: str = ""
    process: subprocess.Popen[bytes] | None = None
    silence: Silence | None = None
    # What the staff says of a teller that it has ended.
    stuck: str = ""
    # The time of the next hiring, or of the frozen teller's thawing.
    due: float = 0.0
    is_frozen: bool = False
    # How often a teller has ended by itself since the last kill of the broker.
    ends: int = 0

    @property
    def name(self) -> str:
        """Of the present or last teller."""
        return f"{self.make}.{self.index}.{self.lives}"


@dataclass(slots=True)
class Said:
    """The statements of all tellers, by kind; excuses by make and reason."""

    committed: set[str] = field(default_factory=set)
    aborted: set[str] = field(default_factory=set)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    gave_up: Counter[tuple[str, str]] = field(default_factory=Counter)
    hung: Counter[tuple[str, str]] = field(default_factory=Counter)

    def excuses(self, make: str) -> int:
        return sum(count for (of, _), count in (self.refused + self.gave_up + self.hung).items() if of == make)

    def require_bounded(self, harms: int) -> None:
        """``harms`` are kills and freezes, of the broker and of tellers. Raises Violation."""
        most = FREE_EXCUSES + EXCUSES_A_HARM * harms
        for make in MAKES:
            found = self.excuses(make)
            what = f"{found} excuses of {make}, and not {most:.0f} at most, for {harms} kills and freezes: {self}"
            require(found <= most, what)

    def __str__(self) -> str:
        kinds = {"refused": self.refused, "gave up": self.gave_up, "hung": self.hung}
        told = [
            f"{make} {kind} {reason} {count}".replace(f" {HUNG} {HUNG}", f" {HUNG}")
            for kind, counter in kinds.items()
            for (make, reason), count in sorted(counter.items())
        ]
        return ", ".join(told) or "none"


class Staff:
    """Tellers of every make; call ``tend`` often. All tellers have ended when its ``with`` ends."""

    def __init__(self, address: str, directory: Path, rng: random.Random, pace: Pace, clock: ServedClock, costs: Costs) -> None:
        self.kills = 0
        self.freezes = 0
        # Tellers that were ended because they made no step for too long. A kafka-python 3.0 teller may wait for ever: it
        # forgets a request for which it cannot connect to the coordinator (``Sender._maybe_send_pending_request``).
        self.hangs: list[str] = []
        # The longest silences of each make: as served, and by the clock on the wall.
        self.silences = dict.fromkeys(MAKES, (0.0, 0.0))
        self._pace = pace
        self._clock = clock
        self._costs = costs
        self._look_at = 0.0
        self._address = address
        self._directory = directory
        self._rng = rng
        self._desks = [Desk(make, index) for make in MAKES for index in range(TELLERS_A_MAKE)]

    def tend(self) -> None:
        """Replace missing tellers, thaw frozen ones when it is time, and end those that are stuck."""
        self._look()
        for desk in self._desks:
            if desk.process is not None and desk.process.poll() is not None:
                self._note_end(desk)
            if time.monotonic() < desk.due:
                continue
            if desk.process is None:
                self._hire(desk)
            elif desk.is_frozen:
                desk.process.send_signal(signal.SIGCONT)
                desk.is_frozen = False

    def harm(self) -> None:
        """Kill a teller, or freeze it for longer than its session timeout."""
        desk = self._rng.choice(self._desks)
        if desk.process is None or desk.is_frozen:
            return
        if self._rng.random() < FREEZE:
            self.freezes += 1
            desk.process.send_signal(signal.SIGSTOP)
            desk.is_frozen = True
            desk.due = time.monotonic() + self._pace.frozen_s
            return
        self.kills += 1
        self._costs.look(desk.make, desk.process.pid)
        desk.process.kill()
        desk.process.wait()
        self._vacate(desk)

    def note_kill(self) -> None:
        """The broker has been killed."""
        for desk in self._desks:
            desk.ends = 0

    def thaw(self) -> None:
        """Thaw and replace all tellers."""
        for desk in self._desks:
            desk.due = 0.0
        self.tend()

    def stop(self) -> None:
        """Stop all tellers, for good; one that does not stop is stuck."""
        present = [(desk, desk.process) for desk in self._desks if desk.process is not None]
        for _, process in present:
            process.terminate()
        while present:
            self._look()
            for desk, process in [each for each in present if each[1].poll() is not None]:
                # SIGTERM ends only one that was hired just now: it has not begun to work, and to wait for that signal.
                if process.returncode not in {0, -signal.SIGTERM}:
                    self._note_end(desk)
                present.remove((desk, process))
            time.sleep(STOP_INTERVAL_S)
        self._desks = []

    def said(self) -> Said:
        """All statements so far."""
        said = Said()
        for path in sorted(self._directory.glob("*.said")):
            for line in path.read_text().splitlines():
                kind, *rest = json.loads(line)
                make = path.name.partition(".")[0]
                if kind == "committed":
                    said.committed.add(rest[0])
                elif kind == "aborted":
                    said.aborted.add(rest[0])
                elif kind == "refused":
                    said.refused[make, rest[1]] += 1
                else:
                    said.gave_up[make, rest[0]] += 1
        said.hung.update((name.partition(".")[0], HUNG) for name in self.hangs)
        return said

    def _look(self) -> None:
        """Note what the tellers have cost, and end those that have made no step for too long."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_INTERVAL_S
        for desk in self._desks:
            if desk.process is None or desk.silence is None or desk.process.poll() is not None:
                continue
            self._costs.look(desk.make, desk.process.pid)
            silent_s = desk.silence.seconds(self._path(desk.name, "said").stat().st_mtime_ns)
            served_s, wall_s = self.silences[desk.make]
            self.silences[desk.make] = max(served_s, silent_s), max(wall_s, desk.silence.wall_seconds())
            if silent_s > HANG_TIMEOUT_S[desk.make] and not desk.is_frozen:
                desk.process.send_signal(signal.SIGALRM)
                desk.silence = None
                desk.stuck = f"{silent_s:.0f} s, without those in which the broker was away or a processor was waited for"

    def _hire(self, desk: Desk) -> None:
        desk.lives += 1
        name = desk.name
        if not desk.transactional_id or self._rng.random() < OTHER_NAME:
            desk.transactional_id = name
        pace = self._pace
        told = Told(
            desk.make,
            name,
            self._address,
            desk.transactional_id,
            self._rng.getrandbits(32),
            pace.orders_a_transaction,
            pace.session_timeout_ms,
            pace.transaction_timeout_ms,
        )
        with self._file(name, "said") as stdout, self._file(name, "stderr") as stderr:
            desk.process = subprocess.Popen(
                [sys.executable, "-m", "tests.campaigns.soak.worker", json.dumps(asdict(told))],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=command_environment(),
            )
        desk.silence, desk.stuck = Silence(self._clock, desk.process.pid), ""

    def _path(self, name: str, kind: str) -> Path:
        return self._directory / f"{name}.{kind}"

    def _file(self, name: str, kind: str) -> IO[bytes]:
        return self._path(name, kind).open("ab")

    def _note_end(self, desk: Desk) -> None:
        assert desk.process is not None
        name, status = desk.name, desk.process.returncode
        if not self._path(name, "said").read_text().rpartition("[")[2].startswith('"gave up"'):
            require(status == -signal.SIGALRM, f"{name} has ended with status {status}")
            silent = desk.stuck or f"{LONGEST_SILENCE_S} s, whatever the machine did"
            require(desk.make == "kafka-python", f"{name} made no step for {silent}")
            self.hangs.append(name)
        desk.ends += 1
        require(desk.ends <= MOST_ENDS_A_KILL, f"{name} is the {desk.ends}th to end by itself since the broker was killed")
        self._vacate(desk)

    def _vacate(self, desk: Desk) -> None:
        desk.process = None
        desk.is_frozen = False
        desk.due = time.monotonic() + self._rng.uniform(0, LONGEST_VACANCY_S)

    def __enter__(self) -> Self:
        self._directory.mkdir()
        self.tend()
        return self

    def __exit__(self, *_: object) -> None:
        for desk in self._desks:
            if desk.process is not None and desk.process.poll() is None:
                desk.process.kill()
                desk.process.wait()
