"""Predicates that select the calls of a function that a crash point means, by their arguments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.protocol.coordinator_records import decode_transaction_key, decode_value
from odradek.protocol.plain_batches import read_batch
from odradek.protocol.record_batch import read_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.transaction.states import TransactionState
    from odradek.protocol.api_keys import ApiKey

    When = Callable[..., bool]

_TRANSACTION_STATE = "__transaction_state"


def of_file(topic: str, suffix: str = ".log", *, is_marker: bool | None = None) -> When:
    """``RealFile.append`` to a file of a topic (``topic-0``: of this partition); only markers, or only others, if asked for.

    Or ``RealFile.truncate``.
    """

    def when(file: Any, buffers: Any) -> bool:
        path = str(Path(f"/proc/self/fd/{file.fileno()}").readlink())
        if f"/{topic}" not in path or not path.endswith(suffix):
            return False
        return is_marker is None or read_header(b"".join(buffers)).is_control == is_marker

    return when


def of_state(*states: TransactionState) -> When:
    """``RealFile.append`` of a record of ``__transaction_state`` that has one of ``states``."""
    is_of_topic = of_file(_TRANSACTION_STATE)

    def when(file: Any, buffers: Any) -> bool:
        if not is_of_topic(file, buffers):
            return False
        return any(
            value is not None and decode_value(decode_transaction_key(key), value).status in states
            for _, key, value in read_batch(b"".join(buffers), 0)
        )

    return when


def settling(*states: TransactionState) -> When:
    """``Transactions.settle`` of one of ``states``."""
    return lambda _self, _transactional_id, value, *_rest: value.status in states


def of_path(part: str, suffix: str = "") -> When:
    """A function whose first or second argument is a path, or has one."""

    def when(*arguments: Any, **_named: Any) -> bool:
        paths = [argument if isinstance(argument, str) else getattr(argument, "path", "") for argument in arguments[:2]]
        return any(f"/{part}" in path and path.endswith(suffix) for path in paths)

    return when


def creating(topic: str) -> When:
    """``LogManager.create`` of a log of a topic."""
    return lambda _self, created, *_rest, **_named: created == topic


def beginning_segment(topic: str, *, is_marker: bool) -> When:
    """``Segment.append`` of a marker, or of something else, as the first batch of a segment of a topic."""
    return lambda segment, buffers, *_rest: (
        segment.size == 0 and f"/{topic}" in segment.path and read_header(b"".join(buffers)).is_control == is_marker
    )


def of_writer(topic: str, partition: int) -> When:
    """A method of the ``LogWriter`` of that partition's log, which knows its directory alone."""
    return lambda writer, *_rest: writer._local.directory.endswith(f"/{topic}-{partition}")


def marking(topic: str) -> When:
    """``TransactionCoordinator.write_marker`` for a topic."""
    return lambda _self, marked, *_rest: marked == topic


def answering(*api_keys: ApiKey) -> When:
    """Dispatch's ``_encode`` for an API."""
    return lambda context, *_rest: context.api_key in api_keys


def asked_for(*api_keys: ApiKey) -> When:
    """``Dispatcher.dispatch`` of a request for an API."""
    return lambda _self, frame, *_rest: int.from_bytes(frame[:2]) in api_keys


def of_offsets(_log: Any, _records: Any, _now_ms: int, producer: tuple[int, int] | None = None) -> bool:
    """``PartitionLog.append`` of offsets that are part of a transaction."""
    return producer is not None
