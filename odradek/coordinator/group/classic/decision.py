"""What one operation on a classic group decides: records, responses, and the hooks that keep the live state right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from odradek.coordinator.runtime.result import CoordinatorResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.runtime.record import CoordinatorRecord
    from odradek.coordinator.runtime.result import Later
    from odradek.protocol.errors import KafkaError
    from odradek.timing.reply import Reply

T = TypeVar("T")


class Decision:
    """Collects the parts of a ``CoordinatorResult``.

    A response may free a connection, whose next request is decided immediately, possibly for the same group. So the runtime gives
    all responses together, after the last change to the group. Where the append fails, or the shard is unloaded before the
    records are committed, all of them fail, for they tell of a decision that rests on records that are not there. Kafka tells
    most of them before it appends. Failure hooks leave the group as one that can be joined again.
    """

    __slots__ = ("_commit_hooks", "_failure_hooks", "_responses", "records")

    def __init__(self) -> None:
        self.records: list[CoordinatorRecord] = []
        self._responses: list[tuple[Reply[Any], Any]] = []
        self._commit_hooks: list[Callable[[], None]] = []
        self._failure_hooks: list[Callable[[KafkaError], None]] = []

    def answer(self, reply: Reply[T | KafkaError] | None, response: T) -> None:
        """Give ``reply`` its response when the records are committed; nothing for None."""
        if reply is not None:
            self._responses.append((reply, response))

    def on_commit(self, hook: Callable[[], None]) -> None:
        """Call ``hook`` when the records are committed; it may answer through this decision."""
        self._commit_hooks.append(hook)

    def on_failure(self, hook: Callable[[KafkaError], None]) -> None:
        """Call ``hook`` when the records cannot be appended, or the shard is let go; it may answer through this decision."""
        self._failure_hooks.append(hook)

    def result(self, response: T | Later) -> CoordinatorResult[T]:
        """The decision as the runtime takes it."""
        if not self._commit_hooks and not self._failure_hooks:
            return CoordinatorResult(self.records, response, responses=self._responses)
        return CoordinatorResult(self.records, response, on_failure=self._fail, on_commit=self._commit, responses=self._responses)

    def _commit(self) -> None:
        for hook in self._commit_hooks:
            hook()
        self._forget_hooks()

    def _fail(self, error: KafkaError) -> None:
        for hook in self._failure_hooks:
            hook(error)
        self._forget_hooks()

    def _forget_hooks(self) -> None:
        # The hooks know this decision: cleared, they leave no circle to the garbage collector.
        self._commit_hooks.clear()
        self._failure_hooks.clear()
