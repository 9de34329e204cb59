"""What one operation on a classic group decides: records, responses, and what follows once the records are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from odradek.coordinator.group.classic.responses import refused
from odradek.coordinator.runtime.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.group.config import Respond
    from odradek.coordinator.runtime.record import CoordinatorRecord
    from odradek.protocol.errors import KafkaError

T = TypeVar("T")


class Decision:
    """Collects; nothing is said to anybody before the operation is over.

    A response may free a connection, whose next request is then decided on at once, possibly for the same group. So responses
    leave together, after the last change to the group. Where the append fails, or the shard is let go before it is committed,
    the error takes the place of them all: what they say was decided on top of what is not there. Kafka tells most of them
    before it appends. Failure hooks see to it that whoever asks again finds the group as one that can be joined.
    """

    __slots__ = ("_commit_hooks", "_failure_hooks", "_responses", "records")

    def __init__(self) -> None:
        self.records: list[CoordinatorRecord] = []
        self._responses: list[tuple[Respond, Any]] = []
        self._commit_hooks: list[Callable[[], None]] = []
        self._failure_hooks: list[Callable[[KafkaError], None]] = []

    def answer(self, respond: Respond | None, response: Any) -> None:
        """Let ``respond`` have its response in the end; None is nobody, who waits for nothing."""
        if respond is not None:
            self._responses.append((respond, response))

    def on_commit(self, hook: Callable[[], None]) -> None:
        """Call ``hook`` when the records are committed; it may answer through this decision."""
        self._commit_hooks.append(hook)

    def on_failure(self, hook: Callable[[KafkaError], None]) -> None:
        """Call ``hook`` when the records cannot be appended, or the shard is let go; it may answer through this decision."""
        self._failure_hooks.append(hook)

    def result(self, response: T) -> Result[T]:
        """The decision as the runtime takes it."""
        if not self._responses and not self.records and not self._failure_hooks:
            return Result(self.records, response)
        return Result(self.records, response, on_failure=self._fail, on_commit=self._commit)

    def deliver(self) -> None:
        """Give the responses out. Each only once: what a response sets off may come back here."""
        responses, self._responses = self._responses, []
        for respond, response in responses:
            respond(response)

    def _commit(self) -> None:
        for hook in self._commit_hooks:
            hook()
        self._forget_hooks()
        self.deliver()

    def _fail(self, error: KafkaError) -> None:
        for hook in self._failure_hooks:
            hook(error)
        self._forget_hooks()
        self._responses = [(respond, refused(response, error.code)) for respond, response in self._responses]
        self.deliver()

    def _forget_hooks(self) -> None:
        # They know this decision, too: without a circle all goes at once, and leaves the garbage collector nothing to look for.
        self._commit_hooks.clear()
        self._failure_hooks.clear()
