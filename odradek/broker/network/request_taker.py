"""The taker of a connection's requests: ``dispatch.Dispatcher``, or until the login a guard (``sasl_listeners``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from odradek.broker.network.large_requests import Outcome
    from odradek.common.context import Session
    from odradek.timing.reply import Reply


class RequestTaker(Protocol):
    """What a connection asks of it. Loop thread only."""

    def pipeline_depth(self, frame: bytes | memoryview) -> int:
        """How many requests may be unanswered once this one has begun."""

    def ensure_allowed(self, key: int, size_bytes: int) -> None:
        """Raise MalformedMessage for a frame under way that would be refused for its size."""

    def dispatch(self, frame: bytes | memoryview, session: Session, arrived_ms: float) -> list[Any] | Reply[Outcome]:
        """The response's chunks, or a Reply of them. Raises MalformedMessage, CloseConnection."""
