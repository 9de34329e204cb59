"""A node as its supervisor sees it: its process and its state.

``NodeState`` has the states:

    DOWN      there is no process
    STARTING  the process has not reported ready yet
    RUNNING   the process has reported ready
    STOPPING  the process was told to end
"""

import os
import signal
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from odradek.cli.local_cluster.plan import NodePlan

_LONGEST_LINE = 4_096


class NodeState(Enum):
    """The state, with its name in ``odradek cluster status``."""

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
    """A child process, and the read end of the pipe from its standard output."""

    pid: int
    stdout: int


Launch = Callable[[NodePlan], Child]
Answer = Callable[[Mapping[str, object]], None]


class Node:
    """One node. The callbacks in ``on_running`` and ``on_down`` are called once, when it is, and dropped."""

    def __init__(self, plan: NodePlan) -> None:
        self.plan = plan
        self.state = NodeState.DOWN
        self.child: Child | None = None
        self.on_running: list[Answer] = []
        self.on_down: list[Answer] = []
        self._said = b""

    def launched(self, child: Child) -> None:
        """Take over a new process."""
        self.enter(NodeState.STARTING)
        self.child = child
        self._said = b""

    def enter(self, state: NodeState) -> None:
        """Enter a state. Raises ValueError if the present state does not permit it."""
        if (self.state, state) not in _PERMITTED:
            message = f"{self.plan.name}: from {self.state.name} to {state.name}"
            raise ValueError(message)
        self.state = state

    def signal(self, number: int) -> None:
        """Send a signal to the process, if there is one. The child is not reaped yet, so its process id is not reused."""
        if self.child is not None:
            os.kill(self.child.pid, number)

    def read(self) -> bool:
        """Read output; return True once the first line, which reports ready, is complete. Also returns False at the end."""
        heard = os.read(self.child.stdout, _LONGEST_LINE) if self.child is not None else b""
        if self.state is not NodeState.STARTING:
            return False
        self._said += heard[: _LONGEST_LINE - len(self._said)]
        return b"\n" in self._said

    def reap(self, options: int = os.WNOHANG) -> str | None:
        """Return how the process ended, in words; None if it has not. Closes the pipe. Waits for it if ``options`` is 0."""
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
        """Return the last line of its log."""
        try:
            lines = self.plan.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        return lines[-1].removeprefix("odradek: ") if lines else ""
