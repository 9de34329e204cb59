"""The event loop of a broker that has a thread to itself."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable


def loop_factory() -> Callable[[], AbstractEventLoop] | None:
    """What makes uvloop's loop where it is installed, else None, for the standard library's loop."""
    with suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop
    return None
