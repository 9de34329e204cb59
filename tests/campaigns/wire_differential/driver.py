"""Sends a script to one broker and notes what comes back.

A *transcript* has, for each step, what came during it: pairs of a step's number and its answer. Mostly that is the step's own
answer. A request that parks is answered during a later step, or not at all. An answer is the response in canonical form, or the
end of the connection: ``{"connection": "closed"}``, and ``"silent"`` where neither came in time. After bytes that are wrong,
``then`` says whether the connection still serves.

With ``expected``, the transcript of another broker, nothing is waited for that is not to come: a difference costs time,
equality none.
"""

import select
import socket
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.record_batch import batch_crc
from odradek.protocol.records import Record, build_batch
from tests.campaigns.wire_differential import wire
from tests.campaigns.wire_differential.canonical import NAME_PREFIX, Canonical
from tests.campaigns.wire_differential.clusters import adapted, broker_for
from tests.campaigns.wire_differential.script import Batch, Ref, Script, Step

Transcript = list[list[tuple[int, Any]]]
CLOSED: Mapping[str, str] = {"connection": "closed"}
SILENT: Mapping[str, str] = {"connection": "silent"}
FIRST_TIMESTAMP = 1_700_000_000_000
_ANSWER_S = 4.0
_SHORT_S = 0.4
_RETRY_S = 10.0
_RETRY_EVERY_S = 0.02
# COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE and CONCURRENT_TRANSACTIONS: a client sends it again.
_AGAIN = frozenset({14, 15, 51})
# NONE, and MEMBER_ID_REQUIRED: answers that give ids to be used.
_WITH_IDS = frozenset({0, 79})
# Kafka answers these when its controller has decided. The broker itself is told a moment later.
_SPREADING = frozenset(
    {
        *(ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.ALTER_CONFIGS),
        *(ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.UPDATE_FEATURES, ApiKey.ALTER_PARTITION_REASSIGNMENTS),
        ApiKey.ALTER_CLIENT_QUOTAS,
    }
)


class Driver:
    """One broker, or three of a cluster: their addresses with commas between.

    ``settle_s`` is waited after a change of the cluster, ``quiet_s`` for answers of which nothing is known.
    """

    def __init__(self, addresses: str, settle_s: float = 0.0, quiet_s: float = 0.12) -> None:
        self._addresses = [(host, int(port)) for host, _, port in (each.partition(":") for each in addresses.split(","))]
        self._settle_s = settle_s
        self._quiet_s = quiet_s
        self._runs: Counter[str] = Counter()

    def run(self, script: Script, expected: Transcript | None = None) -> Transcript:
        """Send all of it, on new connections and with new names."""
        self._runs[script.name] += 1
        # The same names on every broker: what depends on their hashes is alike.
        own = f"{NAME_PREFIX}{script.digest()}{self._runs[script.name]}-"
        with _Run(self._addresses, script, own, expected, self._settle_s, self._quiet_s) as run:
            return [run.step(number, step) for number, step in enumerate(script.steps)]


class _Connection:
    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, 5)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(10)
        # Step number, step: whose answers are owed, in order.
        self.owed: list[tuple[int, Step]] = []
        self.is_open = True

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError:
            self.is_open = False

    def readable(self, timeout_s: float) -> bool:
        return bool(select.select([self.socket], [], [], max(timeout_s, 0))[0])

    def receive(self) -> bytes | None:
        """The frame that has begun to come; None at the end."""
        try:
            head = self._exactly(4)
            return None if head is None else self._exactly(int.from_bytes(head, "big"))
        except OSError:
            self.is_open = False
            return None

    def _exactly(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            chunk = self.socket.recv(size - len(data))
            if not chunk:
                self.is_open = False
                return None
            data += chunk
        return bytes(data)


class _Run:
    """One script on one broker, or one cluster."""

    def __init__(
        self,
        addresses: list[tuple[str, int]],
        script: Script,
        own: str,
        expected: Transcript | None,
        settle_s: float,
        quiet_s: float,
    ) -> None:
        self._addresses = addresses
        self._steps = script.steps
        self._own = own
        self._expected = expected
        self._settle_s = settle_s
        self._quiet_s = quiet_s
        self._canonical = Canonical(own, answers_shift=script.slice == "edges")
        # By name and broker.
        self._connections: dict[tuple[str, int], _Connection] = {}
        self._bound: dict[str, Any] = {}

    def step(self, number: int, step: Step) -> list[tuple[int, Any]]:
        """Send one request; the answers that came."""
        deadline_s = time.monotonic() + _RETRY_S
        while True:
            came, raw = self._once(number, step)
            if step.parks or not _is_to_repeat(step, raw):
                break
            if time.monotonic() > deadline_s:
                if step.until is not None:
                    raise TimeoutError(f"step {number}, {step.api!r} {step.fields}: {raw}")
                break
            time.sleep(_RETRY_EVERY_S)
        if step.api in _SPREADING and (not (codes := error_codes(raw)) or 0 in codes):
            time.sleep(self._settle_s)
        return [(who, self._canonical.answer(self._api(who), answer)) for who, answer in came if self._steps[who].label]

    def _api(self, number: int) -> str:
        return getattr(self._steps[number].api, "name", "")

    def _once(self, number: int, step: Step) -> tuple[list[tuple[int, Any]], Any]:
        """The answers that came during the step as (number, decoded), and its own."""
        broker = broker_for(step.api) if len(self._addresses) > 1 else 0
        connection = self._connection(step.connection, broker)
        connection.send(self._frame(number, step))
        connection.owed.append((number, step))
        own = None
        came: list[tuple[int, Any]] = []
        if not step.parks:
            own = self._own_answer(connection, number, step)
            came.append((number, own))
        if any(each.owed for each in self._connections.values()):
            came += self._drain(number)
        return came, own

    def _own_answer(self, connection: _Connection, number: int, step: Step) -> Any:
        expected = dict(map(tuple, self._expected[number])).get(number) if self._expected is not None else None
        is_silent = step.frame is not None and (expected is None or expected == SILENT)
        if not connection.readable(_SHORT_S if is_silent else _ANSWER_S):
            self._drop(connection)
            return SILENT
        answer = self._take(connection)
        if (step.body is None and step.frame is None) or answer is CLOSED:
            return answer
        is_silent = expected is None or expected.get("then", "silent") == "silent"
        return {"answer": answer, "then": self._still_serves(connection, _SHORT_S if is_silent else _ANSWER_S)}

    def _take(self, connection: _Connection) -> Any:
        """Receive the answer that is owed first."""
        number, step = connection.owed.pop(0)
        data = connection.receive()
        if data is None:
            self._drop(connection)
            return CLOSED
        if len(data) < 4 or int.from_bytes(data[:4], "big") != number:
            return {"connection": f"correlation id {data[:4].hex()}"}
        answer = decoded(step, data)
        for name, path in step.bind.items() if error_codes(answer) <= _WITH_IDS else ():
            found = value_to_bind(answer, path)
            if found not in (-1, -2, "", None):
                self._bound[name] = found
        return answer

    def _still_serves(self, connection: _Connection, wait_s: float) -> str:
        connection.send(wire.frame(ApiKey.API_VERSIONS, 0, -2, b"", flexible=False))
        if not connection.is_open or not connection.readable(wait_s):
            self._drop(connection)
            return "silent"
        if connection.receive() is None:
            self._drop(connection)
            return "closed"
        return "serves"

    def _drain(self, number: int) -> list[tuple[int, Any]]:
        """Take what comes until nothing more is expected, or until it is quiet."""
        came: list[tuple[int, Any]] = []
        awaited = None
        if self._expected is not None:
            owed = {who for each in self._connections.values() for who, _ in each.owed}
            awaited = {who for who, _ in self._expected[number]} & owed
        deadline_s = time.monotonic() + _ANSWER_S
        while True:
            owing = {each.socket: each for each in self._connections.values() if each.owed}
            if not owing:
                break
            if awaited is None:
                wait_s = self._quiet_s
            else:
                wait_s = deadline_s - time.monotonic() if awaited - {who for who, _ in came} else 0.01
            ready = select.select(list(owing), [], [], max(wait_s, 0))[0]
            if not ready:
                break
            for each in ready:
                connection = owing[each]
                came.append((connection.owed[0][0], self._take(connection)))
        return sorted(came, key=lambda each: each[0])

    def _frame(self, number: int, step: Step) -> bytes:
        if step.frame is not None:
            return step.frame
        flexible = isinstance(step.api, ApiKey) and _is_flexible(step.api, step.version)
        if step.body is not None:
            body = step.body
        else:
            assert isinstance(step.api, ApiKey)
            fields = adapted(step) if len(self._addresses) > 1 else step.fields
            body = wire.encode(step.api, step.version, self._resolved(fields))
        return wire.frame(step.api, step.version, number, body, flexible=flexible)

    def _resolved(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._own + value[1:] if value.startswith("@") else value
        if isinstance(value, Mapping):
            return {name: self._resolved(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._resolved(item) for item in value]
        if isinstance(value, Ref):
            found = self._bound.get(value.name, value.default)
            return found + value.plus if value.plus else found
        return batch_bytes(value, self._resolved(value.fields)) if isinstance(value, Batch) else value

    def _connection(self, name: str, broker: int) -> _Connection:
        there = self._connections.get((name, broker))
        while there is not None and there.owed:
            # A broker takes a connection's requests one after the other.
            name += "'"
            there = self._connections.get((name, broker))
        if there is None or not there.is_open:
            there = self._connections[name, broker] = _Connection(self._addresses[broker])
        return there

    def _drop(self, connection: _Connection) -> None:
        connection.is_open = False
        connection.owed = []
        connection.socket.close()
        self._connections = {name: each for name, each in self._connections.items() if each is not connection}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for connection in self._connections.values():
            connection.socket.close()


def batch_bytes(batch: Batch, fields: Mapping[str, Any]) -> bytes:
    """The batch, patched."""
    records = [
        Record(timestamp=FIRST_TIMESTAMP + each, key=b"k%d" % (each % 2), value=b"v%d" % each) for each in range(batch.count)
    ]
    data = bytearray(build_batch(records, **fields))
    for position, patch in batch.patch:
        data[position : position + len(patch)] = patch
    if batch.sealed:
        data[17:21] = batch_crc(data, 0, len(data)).to_bytes(4, "big")
    return bytes(data)


def decoded(step: Step, data: bytes) -> Any:
    """The response; ``{"undecodable": ...}`` if these are not the bytes of one."""
    # A version of ApiVersions that is too new is answered in version 0 (KIP-511).
    for version in (step.version, 0) if step.api == ApiKey.API_VERSIONS else (step.version,):
        try:
            return wire.decode(ApiKey(step.api), version, data)
        except Exception as error:  # noqa: BLE001  whatever kio says of it
            failure = type(error).__name__
    return {"undecodable": failure}


def value_to_bind(answer: Any, path: str) -> Any:
    """The first value at a path; the whole array at one that ends with ``[]``."""
    if not path.endswith("[]"):
        return next(iter(values_at(answer, path)), None)
    found = answer
    for name in path[:-2].split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def values_at(value: Any, path: str) -> list[Any]:
    """The values at a path of field names, through all elements of arrays."""
    found = [value]
    for name in path.split("."):
        found = [item.get(name) for item in found if isinstance(item, dict)]
        found = [inner for item in found for inner in (item if isinstance(item, list) else [item])]
    return found


def error_codes(value: Any) -> set[int]:
    """All error codes in an answer."""
    if isinstance(value, list):
        return {code for item in value for code in error_codes(item)}
    if not isinstance(value, dict):
        return set()
    inner = {code for item in value.values() for code in error_codes(item)}
    return inner | {item for name, item in value.items() if name.endswith("error_code") and isinstance(item, int)}


def _is_flexible(api: ApiKey, version: int) -> bool:
    try:
        return wire.is_flexible(api, version)
    except ValueError:
        return True


def _is_to_repeat(step: Step, answer: Any) -> bool:
    if step.until is None:
        return bool(error_codes(answer) & _AGAIN)
    path, wanted = step.until
    found = values_at(answer, path)
    return not found or any(value not in wanted for value in found)
