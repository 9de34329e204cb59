"""The receiver of a connection's requests: ``dispatch.Dispatcher``, or before the login a guard (``sasl_listeners``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from odradek.broker.network.large_requests import Outcome
    from odradek.common.context import Session
    from odradek.timing.reply import Reply


class RequestTaker(Protocol):
    """The receiver of a connection's requests. Loop thread only."""

    def pipeline_depth(self, frame: bytes | memoryview) -> int:
        """Return how many requests may be unanswered, including this one."""

    def ensure_allowed(self, key: int, size_bytes: int) -> None:
        """Raise MalformedMessage for a partial frame whose announced size is too large."""

    def dispatch(self, frame: bytes | memoryview, session: Session, arrived_ms: float) -> list[Any] | Reply[Outcome]:
        """Return the response's chunks, or a Reply of them. Raises MalformedMessage, CloseConnection."""
