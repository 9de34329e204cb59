"""A node as its supervisor sees it: its process, and how far it has come.

DOWN      there is no process
STARTING  the process has not said that it is ready
RUNNING   it has
STOPPING  it was told to end
"""

import os
import signal
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from odradek.cli.local_cluster.plan import NodePlan

_LONGEST_LINE = 4_096


class NodeState(Enum):
    """As ``odradek cluster status`` tells it."""

    DOWN = "down"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"


_PERMITTED = frozenset(
    {
        (NodeState.DOWN, NodeState.STARTING),
        (NodeState.STARTING, NodeState.RUNNING),
        (NodeState.STARTING, NodeState.STOPPING),
        (NodeState.RUNNING, NodeState.STOPPING),
        *((state, NodeState.DOWN) for state in NodeState if state is not NodeState.DOWN),
    }
)


class Child(NamedTuple):
    """A child process, and the end of a pipe from which its standard output is read."""

    pid: int
    stdout: int


Launch = Callable[[NodePlan], Child]
Answer = Callable[[Mapping[str, object]], None]


class Node:
    """One node. ``on_running`` and ``on_down`` are answered when it is, and forgotten."""

    def __init__(self, plan: NodePlan) -> None:
        self.plan = plan
        self.state = NodeState.DOWN
        self.child: Child | None = None
        self.on_running: list[Answer] = []
        self.on_down: list[Answer] = []
        self._said = b""

    def launched(self, child: Child) -> None:
        """It has a process."""
        self.enter(NodeState.STARTING)
        self.child = child
        self._said = b""

    def enter(self, state: NodeState) -> None:
        """Go on to a state; ValueError where there is no way there."""
        if (self.state, state) not in _PERMITTED:
            message = f"{self.plan.name}: from {self.state.name} to {state.name}"
            raise ValueError(message)
        self.state = state

    def signal(self, number: int) -> None:
        """Send a signal to the process, if there is one. It is our child and not reaped, so the id is its own."""
        if self.child is not None:
            os.kill(self.child.pid, number)

    def read(self) -> bool:
        """Read what it says; True when it has just said its first line, which says that it is ready. False at the end, too."""
        heard = os.read(self.child.stdout, _LONGEST_LINE) if self.child is not None else b""
        if self.state is not NodeState.STARTING:
            return False
        self._said += heard[: _LONGEST_LINE - len(self._said)]
        return b"\n" in self._said

    def reap(self, options: int = os.WNOHANG) -> str | None:
        """If the process has ended: how, in words. Closes the pipe. With 0 as ``options`` it is waited for."""
        if self.child is None:
            return None
        pid, status = os.waitpid(self.child.pid, options)
        if not pid:
            return None
        os.close(self.child.stdout)
        self.child = None
        self.enter(NodeState.DOWN)
        code = os.waitstatus_to_exitcode(status)
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"

    def last_words(self) -> str:
        """The last line of its log."""
        try:
            lines = self.plan.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        return lines[-1].removeprefix("odradek: ") if lines else ""
