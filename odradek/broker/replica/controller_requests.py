"""A broker's requests to the controller that are repeated until they are taken: one open at a time, a pause after a failure."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from odradek.client.api import Api, ClientError, RequestT
from odradek.common.logging import log as broker_log
from odradek.controller.quorum.broker_lifecycle import Controller
from odradek.controller.quorum.controller_channel import AnswerT, ControllerUnavailable
from odradek.timing.driver import Wakeup
from odradek.timing.timer import Timer

_TIMEOUT_MS: Final = 60_000


class ControllerRequests:
    """The requests of one kind. Loop thread only."""

    def __init__(
        self,
        controller: Controller,
        timer: Timer,
        *,
        has_unsent: Callable[[], bool],
        send: Callable[[], Awaitable[str]],
        backoff_ms: float,
        complaint: str,
    ) -> None:
        """``send`` sends what there is and returns why some of it has to be sent again, or "".

        ``complaint`` is logged with that reason, once while the reason stays the same.
        """
        self._controller = controller
        self._wakeup = Wakeup(timer)
        self._has_unsent = has_unsent
        self._send = send
        self._backoff_ms = backoff_ms
        self._complaint = complaint
        self._told = ""
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Send soon, unless that has begun."""
        if self._task is None and self._has_unsent():
            self._task = asyncio.get_running_loop().create_task(self._send_all())

    def close(self) -> None:
        """Send nothing any more."""
        if self._task is not None:
            self._task.cancel()

    async def ask(self, api: Api[RequestT, AnswerT], request: RequestT) -> AnswerT | str:
        """Return the controller's response, or why there is none."""
        try:
            return await self._controller.request(api, request, _TIMEOUT_MS)
        except (ControllerUnavailable, ClientError) as error:
            return str(error)

    async def _send_all(self) -> None:
        try:
            while self._has_unsent():
                reason = await self._send()
                if reason and reason != self._told:
                    broker_log.warn(self._complaint, reason=reason)
                self._told = reason
                if reason:
                    await self._wakeup.wait(self._backoff_ms)
        finally:
            self._task = None
