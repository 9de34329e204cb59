"""The page: a view of a broker and its cluster in a browser.

``facts`` reads, ``actions`` changes. Both act as a Kafka client with the rights of the page's user. The modules are imported when
a browser first asks for the page.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from odradek.http.control.api import ControlApi
    from odradek.page.app import PageSite


class LatePage:
    """The page, imported at the first request, since its modules take 7 MiB. ``close`` it once."""

    def __init__(self, control: ControlApi, token: str, *, is_read_only: bool) -> None:
        self._control = control
        self._token = token
        self._is_read_only = is_read_only
        self._site: PageSite | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. See ASGI."""
        if self._site is None:
            await asyncio.to_thread(import_module, "odradek.page.app")
        if self._site is None:
            from odradek.page.app import PageSite  # 7 MiB

            broker, held = self._control.broker, self._control.held
            self._site = PageSite(broker, held, self._token, is_read_only=self._is_read_only)
        await self._site(scope, receive, send)

    async def close(self) -> None:
        """Close the page's connections to the broker."""
        if self._site is not None:
            await self._site.close()
