"""What a shard's operation decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from odradek.coordinator.runtime.marker import EndTxnMarker
from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.protocol.errors import KafkaError

T = TypeVar("T")


class Result(Generic[T]):
    """Records to append and replay, and the response to give once the log has them for good.

    ``on_commit`` is called when the high watermark has passed the records, before the response is given; at once where there are
    no records and nothing earlier is pending. What it writes to the same shard is appended before the response is given.
    ``on_answered`` is called when the response has been given, and those of all that were committed together; nothing that comes
    from outside is decided in between.
    ``on_failure`` is called instead of both when the records could not be appended (the timelines are rolled back by then) or
    the shard was unloaded before they were committed: it corrects what is kept outside the timelines. Of all that failed
    together what was decided last is corrected first; what is asked of the shard meanwhile is decided when all of it is.

    The records go into one batch, all or nothing, unless ``atomic`` is False: then they may be spread over several, and some
    may stay when a later batch fails.

    ``at_once``: they are appended when they have been decided on, behind the open batch, and not when the loop's turn is over,
    for they are seldom joined by others; but with ``on_answered`` only where the answer is held until then, and has not to wait
    for what follows from it. ``on_commit`` does not write to the shard.

    With a ``producer``, an id and its epoch, the records are part of its transaction and get a batch of their own, at once; a
    ``marker`` ends such a transaction, without records. Only a ``TransactionalShard`` decides on these.
    """

    __slots__ = ("at_once", "atomic", "marker", "on_answered", "on_commit", "on_failure", "producer", "records", "response")

    def __init__(
        self,
        records: Sequence[CoordinatorRecord],
        response: T,
        on_failure: Callable[[KafkaError], None] | None = None,
        on_commit: Callable[[], None] | None = None,
        on_answered: Callable[[], None] | None = None,
        atomic: bool = True,
        producer: tuple[int, int] | None = None,
        marker: EndTxnMarker | None = None,
        at_once: bool = False,
    ) -> None:
        self.records = records
        self.response = response
        self.on_failure = on_failure
        self.on_commit = on_commit
        self.on_answered = on_answered
        self.atomic = atomic
        self.producer = producer
        self.marker = marker
        self.at_once = at_once
