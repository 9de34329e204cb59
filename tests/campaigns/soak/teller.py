"""A teller, a worker of the bank: it reads orders as a member of a group, and carries out a few in each transaction.

This module has the common part of the tellers of every make. A teller reports each fact at once, as a line on stdout:

    ["committed", attempt]        its transaction was confirmed as committed
    ["aborted", attempt]          it was aborted on purpose
    ["refused", attempt, error]   it was aborted because the broker refused a request
    ["gave up", error]            the teller cannot continue, and ends

Each step touches the file that is stdout, whose time tells the staff that the teller gets on. At SIGALRM, of the staff or after
``LONGEST_SILENCE_S`` without a step, a teller writes its stack to stderr and ends.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import signal
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tests.campaigns.soak.bank import Output, Partition, Placed, first_offsets, next_offsets, orders_of, transfers

if TYPE_CHECKING:
    from collections.abc import Sequence

# Of time that passes, whatever the reason.
LONGEST_SILENCE_S = 120
HEARTBEAT_INTERVAL_MS = 300
DOOMED = 0.08
LONGEST_PAUSE_S = 0.04


@dataclass(frozen=True, slots=True)
class Told:
    """The arguments of a teller's process.

    ``name`` is new in each life; ``transactional_id`` may be that of the life before. ``orders`` is the most for a transaction.
    """

    make: str
    name: str
    address: str
    transactional_id: str
    seed: int
    orders: int
    session_timeout_ms: int
    transaction_timeout_ms: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One transaction: its records, the offsets after its orders and their first offsets, and its intended end.

    ``pause_s`` is how long it stays open, so that kills hit it.
    """

    name: str
    is_doomed: bool
    outputs: list[Output]
    offsets: dict[Partition, int]
    begin: dict[Partition, int]
    pause_s: float


class Teller(ABC):
    """A teller; ``work`` until told to stop by SIGTERM."""

    make: ClassVar[str]

    def __init__(self, told: Told) -> None:
        self.told = told
        self.group = orders_of(told.make)
        self._rng = random.Random(told.seed)
        self._attempts = 0
        self._is_stopping = False
        signal.signal(signal.SIGTERM, self._stop)
        faulthandler.register(signal.SIGALRM, chain=True)
        self._note_step()

    @abstractmethod
    def work(self) -> None:
        """Carry out orders while ``goes_on`` is true."""

    def goes_on(self) -> bool:
        """Record a step; returns whether to make another one."""
        self._note_step()
        return not self._is_stopping

    def attempt(self, orders: Sequence[Placed]) -> Attempt:
        """The next transaction."""
        self._attempts += 1
        name = f"{self.told.name}:{self._attempts}"
        is_doomed = self._rng.random() < DOOMED
        outputs = transfers(orders, name, is_doomed=is_doomed)
        self._rng.shuffle(outputs)
        pause_s = self._rng.uniform(0, LONGEST_PAUSE_S)
        return Attempt(name, is_doomed, outputs, next_offsets(orders), first_offsets(orders), pause_s)

    def ended(self, attempt: Attempt) -> None:
        """Report that the attempt ended as intended."""
        say("aborted" if attempt.is_doomed else "committed", attempt.name)

    def refused(self, attempt: Attempt, error: BaseException) -> None:
        say("refused", attempt.name, described(error))

    def _note_step(self) -> None:
        signal.alarm(LONGEST_SILENCE_S)
        os.utime(sys.stdout.fileno())

    def _stop(self, *_: object) -> None:
        self._is_stopping = True


def described(error: BaseException) -> str:
    """The error by its library's name, without variable details."""
    code = getattr(error.args[0], "name", None) if error.args else None
    return f"{type(error).__name__}({code()})" if callable(code) else type(error).__name__


def say(*line: str) -> None:
    """A line on stdout in one write, which a kill cannot tear."""
    os.write(sys.stdout.fileno(), json.dumps(line).encode() + b"\n")
