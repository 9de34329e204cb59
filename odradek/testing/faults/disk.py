"""Rules applied to the disk: at an append, at a sync, or at a point, which is the append of one kind of record to a log.

``before`` the append, the decision is nowhere. ``after`` it, the decision is in the log, and no answer is sent. ``torn``, a
part of the record is in the log. So "PrepareCommit is written and the markers are not" is ``point="PrepareCommit",
restart="after"``, and "offsets are appended and not answered" is ``point="Offsets", restart="after"``. An acknowledgement of a
share group that is stored and not answered is ``point="ShareUpdate", restart="after"``; ``"before"``, it is neither.

Appends come on the broker's loop, syncs in threads, too. A slow disk is slow by the machine's clock.
"""

from __future__ import annotations

import asyncio
import errno
import os
from fnmatch import fnmatchcase
from threading import Event, Lock
from typing import TYPE_CHECKING, Final, Protocol

from odradek.coordinator.transaction.states import STATE_NAMES, TransactionState
from odradek.protocol.coordinator_records import decode_key, decode_share_state_key, decode_transaction_key, decode_value
from odradek.protocol.coordinator_records.groups import GroupMetadataKey
from odradek.protocol.coordinator_records.offsets import OffsetCommitKey
from odradek.protocol.coordinator_records.share_states import ShareSnapshotKey, ShareUpdateKey
from odradek.protocol.coordinator_records.transactions import TransactionLogKey, TransactionLogValue
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.plain_batches import read_batch
from odradek.protocol.record_batch import read_header
from odradek.testing.faults.fault import Fired

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.protocol.record_batch import Buffer
    from odradek.testing.faults.fault import Fault

__tracebackhide__ = True

TRANSACTION_STATE: Final = "__transaction_state-"
CONSUMER_OFFSETS: Final = "__consumer_offsets-"
SHARE_GROUP_STATE: Final = "__share_group_state-"
_LOG: Final = ".log"


class Rules(Protocol):
    """The rules (``faults``)."""

    @property
    def rules(self) -> tuple[Fault, ...]:
        """Return the rules in the order in which they are asked."""

    def note(self, fault: Fault, fired: Fired) -> None:
        """Record that a rule has fired."""

    def restart_now(self, *, lose_power: bool = False) -> None:
        """End the broker as kill -9 does, or its machine as a loss of power does, and start it again."""


class FaultyDisk:
    """Wraps each operation of a broker's files (``severed.Watch``)."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def serve(self) -> None:
        """Take the running loop as the broker's."""
        self._loop = asyncio.get_running_loop()

    def around(self, operation: str, path: str, buffers: Sequence[Buffer], do: Callable[[Sequence[Buffer]], None]) -> None:
        """Perform the operation on the file at ``path``, or the action of a rule instead. Raises OSError."""
        fault = self._firing_at(operation, path, buffers)
        if fault is None:
            do(buffers)
            return
        match fault.action, fault.value:
            case "error", code:
                raise OSError(code, os.strerror(code), path)
            case "delay_ms", delay_ms:
                Event().wait(delay_ms / 1000)
                do(buffers)
            case "restart" | "power_loss", "after":
                do(buffers)
                self._end(fault)
            case _, "torn":
                whole = b"".join(buffers)
                do([whole[: len(whole) // 2]])
                self._end(fault)
                raise OSError(errno.EIO, "the broker process that wrote this has ended", path)
            case _:
                self._end(fault)
                raise OSError(errno.EIO, "the broker process has ended", path)

    def _end(self, fault: Fault) -> None:
        def end() -> None:
            self._rules.restart_now(lose_power=fault.action == "power_loss")

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(end)
        else:
            end()

    def _firing_at(self, operation: str, path: str, buffers: Sequence[Buffer]) -> Fault | None:
        points: set[str] | None = None
        with self._lock:
            for fault in self._rules.rules:
                words = fault.words
                if "point" in words:
                    if operation != "append" or not _is_at(words, path):
                        continue
                    points = points_of(path, buffers) if points is None else points
                    if words["point"] not in points:
                        continue
                elif words.get("disk") != operation or not _is_at(words, path):
                    continue
                if not fault.draws():
                    continue
                self._rules.note(fault, Fired(str(fault), fault.action, operation, None, None, None, (path,)))
                if fault.action is not None:
                    return fault
        return None


def _is_at(words: dict[str, object], path: str) -> bool:
    """Return whether a path matches the rule's topic, partition and ``path``."""
    directory = path.rpartition("/")[0].rpartition("/")[2]
    topic, _, partition = directory.rpartition("-")
    return (
        words.get("topic", topic) == topic
        and str(words.get("partition", partition)) == partition
        and ("path" not in words or fnmatchcase(path, f"*{words['path']}"))
    )


def points_of(path: str, buffers: Sequence[Buffer]) -> set[str]:
    """Return the points that an append to a file matches."""
    directory, _, name = path.rpartition("/")
    if not name.endswith(_LOG):
        return set()
    directory = directory.rpartition("/")[2]
    data = b"".join(buffers)
    header = read_header(data)
    if header.is_control:
        return {"GroupMarker" if directory.startswith(CONSUMER_OFFSETS) else "Marker"}
    if directory.startswith(TRANSACTION_STATE):
        return _states(data)
    if directory.startswith(CONSUMER_OFFSETS):
        return _of_groups(data, is_pending=header.is_transactional)
    if directory.startswith(SHARE_GROUP_STATE):
        return _of_shares(data)
    return set() if directory.startswith("__") else {"Records"}


def _states(data: bytes) -> set[str]:
    found = set()
    for _, key, value in read_batch(data, 0):
        if key is not None and value is not None:
            known = decode_transaction_key(key)
            if isinstance(known, TransactionLogKey):
                decoded = decode_value(known, value)
                if isinstance(decoded, TransactionLogValue):
                    found.add(STATE_NAMES[TransactionState(decoded.status)])
    return found


def _of_shares(data: bytes) -> set[str]:
    found = set()
    for _, key, _value in read_batch(data, 0):
        known = None if key is None else decode_share_state_key(key)
        if isinstance(known, ShareSnapshotKey):
            found.add("ShareSnapshot")
        elif isinstance(known, ShareUpdateKey):
            found.add("ShareUpdate")
    return found


def _of_groups(data: bytes, *, is_pending: bool) -> set[str]:
    found = set()
    for _, key, _value in read_batch(data, 0):
        try:
            known = None if key is None else decode_key(key)
        except MalformedMessage:
            continue
        if isinstance(known, OffsetCommitKey):
            found.add("PendingOffsets" if is_pending else "Offsets")
        elif isinstance(known, GroupMetadataKey):
            found.add("Group")
    return found
