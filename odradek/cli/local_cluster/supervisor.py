"""Starts the nodes of a cluster, watches them, carries out requests of ``control``, and stops the nodes in order.

It forks, so it has one thread and one selector, no further threads and no event loop. Signals come as bytes on a pipe. A node
that ends by itself stays down until it is started again, and the others go on. At a stop the brokers end first, because they
announce their end to the controller; the controller ends last.
"""

import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial

from odradek.cli.local_cluster.control import MAX_LINE_BYTES, decode, encode
from odradek.cli.local_cluster.node import Answer, Child, Node, NodePlan, NodeState
from odradek.client.api import ClientError
from odradek.client.apis import METADATA
from odradek.client.blocking import BlockingClient
from odradek.protocol.message_types.metadata import MetadataRequest
from odradek.timing.clock import Clock

CANNOT_START = 2
# The time brokers have to leave, and then the controller to end. The rest is killed.
_STOP_GRACE_MS = 30_000.0
# Without a controller, brokers have nothing to wait for.
_STOP_GRACE_WITHOUT_CONTROLLER_MS = 3_000.0
# A ready broker answers at once. The supervisor does nothing else meanwhile.
_ANSWER_TIMEOUT_S = 0.3
_ASKED_AGAIN_AFTER_S = 0.01
# Brokers learn of each other within milliseconds.
_PATIENCE_MS = 10_000.0
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HANDLED_SIGNALS = (*_STOP_SIGNALS, signal.SIGCHLD)


class Supervisor:
    """The supervisor. Call ``run`` once. ``launch`` makes the process of a node; ``listening`` is the socket of ``control``."""

    def __init__(
        self, plans: Sequence[NodePlan], launch: Callable[[NodePlan], Child], listening: socket.socket, clock: Clock
    ) -> None:
        self._nodes = {plan.node_id: Node(plan) for plan in plans}
        self._launch = launch
        self._listening = listening
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._signals_read, self._signals_write = os.pipe()
        self._said_ready = False
        # Brokers that are ready but not known to all others yet, each with its deadline.
        self._joining: dict[int, float] = {}
        self._status = 0
        # The time at which nodes that do not stop are killed; None unless a stop is in progress.
        self._deadline_ms: float | None = None
        # True if a second stop signal has come.
        self._is_impatient = False

    def run(self) -> int:
        """Run until the cluster is stopped, or could not start. Return the exit status."""
        self._handle_signals()
        self._selector.register(self._signals_read, selectors.EVENT_READ, self._on_signals)
        self._selector.register(self._listening, selectors.EVENT_READ, self._accept)
        try:
            for node in self._nodes.values():
                self._start(node)
            while self._deadline_ms is None or self._alive():
                for key, _ in self._selector.select(self._wait_s()):
                    key.data()
                self._introduce()
                self._stop_further()
        finally:
            self._kill_all()
            self.release()
        return self._status

    def release(self) -> None:
        """Close the supervisor's own files: at its end, and in each child."""
        signal.set_wakeup_fd(-1)
        self._selector.close()
        self._listening.close()
        pipes = [node.child.stdout for node in self._alive() if node.child]
        for number in (self._signals_read, self._signals_write, *pipes):
            os.close(number)

    def _handle_signals(self) -> None:
        os.set_blocking(self._signals_write, False)
        signal.set_wakeup_fd(self._signals_write, warn_on_full_buffer=False)
        for number in HANDLED_SIGNALS:
            # Under nohup a cluster outlives its terminal.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                # The bytes on the pipe are enough; but without a handler there would be none.
                signal.signal(number, lambda *_: None)

    def _start(self, node: Node) -> None:
        child = self._launch(node.plan)
        node.launched(child)
        self._selector.register(child.stdout, selectors.EVENT_READ, partial(self._hear, node))

    def _hear(self, node: Node) -> None:
        if not node.read():
            return
        node.enter(NodeState.RUNNING)
        if node in self._brokers():
            self._joining[node.plan.node_id] = self._clock.monotonic_ms() + _PATIENCE_MS
        else:
            self._answer_running(node)

    def _introduce(self) -> None:
        """Find the brokers that all others know by now. Each broker learns of the others from the controller."""
        if self._deadline_ms is not None:
            return
        running = [broker for broker in self._brokers() if broker.state is NodeState.RUNNING]
        joining = [broker for broker in running if broker.plan.node_id in self._joining]
        listed = {broker.plan.node_id: known_to(broker) for broker in running} if joining else {}
        for node in joining:
            node_id = node.plan.node_id
            if listed.keys() <= listed[node_id] and all(node_id in brokers for brokers in listed.values()):
                self._joined(node)
            elif self._clock.monotonic_ms() >= self._joining[node.plan.node_id]:
                tell(f"{node.plan.name} is ready, but not all brokers know each other yet")
                self._joined(node)
        if not self._said_ready and not self._joining and len(running) == len(self._brokers()):
            self._said_ready = True
            print(f"odradek cluster ready on {','.join(broker.plan.address for broker in running)}", flush=True)

    def _joined(self, node: Node) -> None:
        del self._joining[node.plan.node_id]
        self._answer_running(node)

    def _answer_running(self, node: Node) -> None:
        _answer_all(node.on_running, {"done": f"{node.plan.name} is ready on {node.plan.address}"})

    def _on_signals(self) -> None:
        numbers = os.read(self._signals_read, 256)
        if signal.SIGCHLD in numbers:
            for node in self._nodes.values():
                self._reap(node)
        for _ in (number for number in numbers if number in _STOP_SIGNALS):
            if self._deadline_ms is None:
                self._stop()
            else:
                self._is_impatient = True
                self._status = 128 + signal.SIGINT
                self._deadline_ms = self._clock.monotonic_ms()

    def _reap(self, node: Node) -> None:
        child, state = node.child, node.state
        how = node.reap()
        if how is None or child is None:
            return
        self._joining.pop(node.plan.node_id, None)
        self._selector.unregister(child.stdout)
        words = node.last_words() if how.startswith("exit status") else ""
        reason = f"{how}{f': {words}' if words else ''}"
        stopped = "the cluster was stopped before it was ready"
        _answer_all(
            node.on_running,
            {"refused": f"{node.plan.name} did not start: {stopped if state is NodeState.STOPPING else reason}"},
        )
        for waiting in self._brokers() if node.plan.role == "controller" else ():
            _answer_all(waiting.on_running, {"refused": _waits(waiting, node)})
        _answer_all(node.on_down, {"done": f"{node.plan.name} is down"})
        if state is NodeState.STOPPING:
            return
        if self._said_ready:
            tell(f"{node.plan.name} (pid {child.pid}) ended: {reason}; its log is {node.plan.log_path}")
        elif self._deadline_ms is None:
            tell(f"{node.plan.name} did not start: {reason}")
            self._status = CANNOT_START
            self._stop()

    def _stop(self) -> None:
        """Begin to stop: the brokers first."""
        controllers = [node for node in self._nodes.values() if node not in self._brokers()]
        has_controller = all(node.state is NodeState.RUNNING for node in controllers)
        self._deadline_ms = self._clock.monotonic_ms() + (_STOP_GRACE_MS if has_controller else _STOP_GRACE_WITHOUT_CONTROLLER_MS)
        self._end(self._brokers())

    def _stop_further(self) -> None:
        """Stop the controller when the brokers have ended; kill what remains after the deadline."""
        if self._deadline_ms is None:
            return
        if self._clock.monotonic_ms() >= self._deadline_ms:
            for node in self._alive():
                if node.state is not NodeState.STOPPING:
                    node.enter(NodeState.STOPPING)
                elif not self._is_impatient:
                    tell(f"{node.plan.name} did not end in time: killing it")
                node.signal(signal.SIGKILL)
            self._deadline_ms = self._clock.monotonic_ms() + _STOP_GRACE_MS
        elif not any(broker.child for broker in self._brokers()):
            self._end(list(self._nodes.values()))

    def _end(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node.state in {NodeState.STARTING, NodeState.RUNNING}:
                node.enter(NodeState.STOPPING)
                node.signal(signal.SIGTERM)

    def _kill_all(self) -> None:
        for node in self._alive():
            node.signal(signal.SIGKILL)
        for node in self._alive():
            node.reap(0)

    def _alive(self) -> list[Node]:
        return [node for node in self._nodes.values() if node.child is not None]

    def _brokers(self) -> list[Node]:
        return [node for node in self._nodes.values() if node.plan.role == "broker"]

    def _wait_s(self) -> float | None:
        if self._joining and self._deadline_ms is None:
            return _ASKED_AGAIN_AFTER_S
        return None if self._deadline_ms is None else max(self._deadline_ms - self._clock.monotonic_ms(), 0) / 1_000

    def _accept(self) -> None:
        with suppress(OSError):
            connection, _ = self._listening.accept()
            connection.setblocking(False)
            self._selector.register(connection, selectors.EVENT_READ, partial(self._read_request, connection, bytearray()))

    def _read_request(self, connection: socket.socket, received: bytearray) -> None:
        try:
            data = connection.recv(MAX_LINE_BYTES)
        except OSError:
            data = b""
        received += data
        if data and b"\n" not in received and len(received) < MAX_LINE_BYTES:
            return
        self._selector.unregister(connection)
        request = decode(bytes(received))
        if request is None:
            connection.close()
        else:
            self._do(request, partial(_respond, connection))

    def _do(self, request: Mapping[str, object], answer: Answer) -> None:
        """Carry out one command; the answer may come later."""
        if request.get("do") == "status":
            answer({"nodes": [_described(node) for node in self._nodes.values()]})
            return
        node = next((node for node_id, node in self._nodes.items() if node_id == request.get("node")), None)
        if node is None:
            answer({"refused": f"there is no node {request.get('node')}; nodes: {', '.join(map(str, self._nodes))}"})
        elif self._deadline_ms is not None:
            answer({"refused": "the cluster is being stopped"})
        elif request.get("do") == "kill":
            self._kill(node, answer)
        elif request.get("do") == "start" and node.child is None:
            self._start_asked(node, answer)
        else:
            answer({"refused": f"{node.plan.name} is {node.state.value}"})

    def _start_asked(self, node: Node, answer: Answer) -> None:
        controllers = [each for each in self._nodes.values() if each.plan.role == "controller"]
        down = next((each for each in controllers if each.child is None), None)
        if down not in (None, node):
            # The broker could not register, and its start would not end.
            answer({"refused": _waits(node, down)})
            return
        self._start(node)
        node.on_running.append(answer)

    def _kill(self, node: Node, answer: Answer) -> None:
        if node.child is None:
            answer({"refused": f"{node.plan.name} is {node.state.value}"})
            return
        node.on_down.append(answer)
        node.signal(signal.SIGKILL)


def tell(line: str) -> None:
    """Print one line on stderr."""
    print(f"odradek: {' '.join(line.split())}", file=sys.stderr, flush=True)


def known_to(broker: Node) -> AbstractSet[int]:
    """Return the ids of the brokers in a broker's metadata; none if it does not answer."""
    host, _, port = broker.plan.address.rpartition(":")
    try:
        client = BlockingClient(host, int(port), "odradek cluster", _ANSWER_TIMEOUT_S)
    except ClientError:
        return frozenset()
    try:
        return {each.node_id for each in client.call(METADATA, MetadataRequest(topics=())).brokers}
    except ClientError:
        return frozenset()
    finally:
        client.close()


def _described(node: Node) -> dict[str, object]:
    return {
        "node": node.plan.node_id,
        "role": node.plan.role,
        "address": node.plan.address,
        "pid": node.child.pid if node.child else None,
        "state": node.state.value,
    }


def _waits(broker: Node, controller: Node) -> str:
    plan = controller.plan
    return f"{broker.plan.name} cannot start while {plan.name} is down: run odradek cluster start {plan.node_id} first"


def _answer_all(waiting: list[Answer], message: Mapping[str, object]) -> None:
    for answer in waiting:
        answer(message)
    waiting.clear()


def _respond(connection: socket.socket, message: Mapping[str, object]) -> None:
    # The client may have closed its connection.
    with connection, suppress(OSError):
        connection.sendall(encode(message))
