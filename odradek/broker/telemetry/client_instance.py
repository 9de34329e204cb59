"""One client instance: what it is asked for, and when it was heard last.

A client may get its subscription once in a push interval, and push once in one; the first push after a get may come at any time,
since clients draw when they begin. Source: ``ClientMetricsInstance`` of Apache Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from odradek.broker.context import Session
    from odradek.broker.telemetry.subscriptions import Asked
    from odradek.timing.timer import TimerTask


class ClientInstance:
    """Times are those of the monotonic clock; None before the first request. Loop thread only."""

    __slots__ = (
        "_last_get_ms",
        "_last_push_ms",
        "asked",
        "attributes",
        "expiry",
        "instance_id",
        "is_terminating",
        "last_error",
        "session",
        "version",
    )

    def __init__(
        self, instance_id: UUID, session: Session, attributes: Mapping[str, str | None], asked: Asked, version: int
    ) -> None:
        """It goes with its ``session``. ``version`` is that of the subscriptions which ``asked`` was made of."""
        self.instance_id = instance_id
        self.session = session
        self.attributes = attributes
        self.asked = asked
        self.version = version
        self.is_terminating = False
        self.last_error = ErrorCode.NONE
        self.expiry: TimerTask | None = None
        self._last_get_ms: float | None = None
        self._last_push_ms: float | None = None

    def may_get(self, now_ms: float) -> bool:
        """Note a get, if it does not come too early."""
        times = [each for each in (self._last_get_ms, self._last_push_ms) if each is not None]
        if times and now_ms - max(times) < self.asked.interval_ms:
            return False
        self._last_get_ms = now_ms
        return True

    def may_push(self, now_ms: float) -> bool:
        """Note a push, if it does not come too early."""
        get_ms, push_ms = self._last_get_ms, self._last_push_ms
        has_got = get_ms is not None and (push_ms is None or get_ms > push_ms)
        if not has_got and push_ms is not None and now_ms - push_ms < self.asked.interval_ms:
            return False
        self._last_push_ms = now_ms
        return True

    def cancel_expiry(self) -> None:
        """It is gone, or another one in its place."""
        if self.expiry is not None:
            self.expiry.cancel()
            self.expiry = None
