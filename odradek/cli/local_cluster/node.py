"""The nodes of a local cluster: the settings of each process, its port, its state.

A cluster's directory has a data directory (``broker-1``, ``controller-100``) and a log (``broker-1.log``) of each node. It
also has the socket of ``control``, and a lock.

Ports stay reserved even while their broker is down. On Linux a socket that is bound and does not listen keeps the system from
giving its port to an outgoing connection, and lets a broker listen there (both have SO_REUSEADDR). Elsewhere a free port is
found and released.

``NodeState`` has the states of a ``Node``, as its supervisor sees it:

    DOWN      there is no process
    STARTING  the process has not reported ready yet
    RUNNING   the process has reported ready
    STOPPING  the process was told to end
"""

import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Final, NamedTuple, Self

HOST = "127.0.0.1"
CONTROLLER_ID = 100
# Brokers have the node ids below the controller's.
MAX_BROKERS = CONTROLLER_ID - 1
# Settings that the command decides itself.
DECIDED = frozenset(
    {
        *("process.roles", "node.id", "broker.id", "listeners", "advertised.listeners", "listener.security.protocol.map"),
        *("controller.listener.names", "controller.quorum.voters", "controller.quorum.bootstrap.servers"),
        *("inter.broker.listener.name", "log.dir", "log.dirs", "metadata.log.dir"),
    }
)
_NONE: Final[Mapping[int, Mapping[str, str]]] = MappingProxyType({})
_USUAL_REPLICAS = 3
_USUAL_MIN_ISR = 2


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One node: a process of ``odradek serve`` with these settings, on an address that never changes."""

    node_id: int
    role: str
    port: int
    directory: Path
    settings: Mapping[str, str]

    @property
    def name(self) -> str:
        """Return the node's name for people."""
        return f"{self.role} {self.node_id}"

    @property
    def address(self) -> str:
        """Return HOST:PORT."""
        return f"{HOST}:{self.port}"

    @property
    def log_path(self) -> Path:
        """Return the file for the node's log lines."""
        return self.directory.with_name(f"{self.directory.name}.log")


def plan_cluster(
    directory: Path,
    controller_port: int,
    broker_ports: Sequence[int],
    chosen: Mapping[str, str],
    of_broker: Mapping[int, Mapping[str, str]] = _NONE,
    *,
    cores: int,
) -> tuple[NodePlan, ...]:
    """Plan the controller, and brokers 1 to N on these ports.

    ``chosen`` are settings of all nodes, ``of_broker`` settings of single brokers by id. Replication factors are three, or the
    number of brokers if that is less. If the machine does not have more cores than there are brokers, busy polling is off:
    another node can use the core.
    """
    replicas = min(len(broker_ports), _USUAL_REPLICAS)
    shared = {
        "controller.quorum.voters": f"{CONTROLLER_ID}@{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "default.replication.factor": str(replicas),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(min(replicas, _USUAL_MIN_ISR)),
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(min(replicas, _USUAL_MIN_ISR)),
        **({"socket.busy.poll.us": "0"} if cores <= len(broker_ports) else {}),
        **chosen,
    }
    roles = [("controller", CONTROLLER_ID, controller_port, "CONTROLLER")]
    roles += [("broker", node_id, port, "PLAINTEXT") for node_id, port in enumerate(broker_ports, 1)]
    return tuple(
        NodePlan(
            node_id,
            role,
            port,
            directory / f"{role}-{node_id}",
            {
                **shared,
                **of_broker.get(node_id, {}),
                "process.roles": role,
                "node.id": str(node_id),
                "listeners": f"{listener}://{HOST}:{port}",
                **({"advertised.listeners": f"{listener}://{HOST}:{port}"} if role == "broker" else {}),
            },
        )
        for role, node_id, port, listener in roles
    )


class PortTaken(Exception):
    """A requested port is in use."""


class ReservedPorts:
    """Reserved ports, a context manager. ``numbers`` are in the requested order; 0 asks for a free port. Raises PortTaken."""

    def __init__(self, wanted: Sequence[int]) -> None:
        with ExitStack() as on_failure:
            self._sockets = [on_failure.enter_context(_bind(port)) for port in wanted]
            self.numbers: tuple[int, ...] = tuple(bound.getsockname()[1] for bound in self._sockets)
            on_failure.pop_all()
        if sys.platform != "linux":
            self.close()

    def close(self) -> None:
        """Release the ports."""
        for bound in self._sockets:
            with suppress(OSError):
                bound.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def _bind(port: int) -> socket.socket:
    bound = socket.socket()
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((HOST, port))
    except OSError as error:
        bound.close()
        raise PortTaken(f"cannot bind {HOST}:{port}: {error.strerror}; choose another --port, or 0 for free ones") from error
    return bound


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
