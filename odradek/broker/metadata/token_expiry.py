"""Removes delegation tokens whose time is over, each ``delegation.token.expiry.check.interval.ms``, at the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.metadata.delegation_tokens import removals

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.metadata.controller import Controller
    from odradek.timing.timer import Timer


class TokenExpiry:
    """Begins with ``start``, and ends with the timer. Loop thread only."""

    def __init__(self, controller: Controller, timer: Timer, config: BrokerConfig) -> None:
        self._controller = controller
        self._timer = timer
        self._interval_ms: int = config["delegation.token.expiry.check.interval.ms"]

    def start(self) -> None:
        """Look again and again."""
        self._timer.call_after(self._interval_ms, self._run)

    def _run(self) -> None:
        try:
            self._controller.change(lambda image: (None, removals(image, self._controller.clock.now_ms())))
        finally:
            self.start()
