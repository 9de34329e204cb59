"""A response that is not there yet: what a handler returns when its answer has to wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Reply:
    """Completed once; who waits for it is called at that moment, on the loop thread.

    ``is_decided``: what was asked for has been done, and only the answer has to wait. ``response`` is None until it is ``done``.
    """

    __slots__ = ("_when_done", "done", "is_decided", "response")

    def __init__(self) -> None:
        self.done = False
        self.is_decided = False
        self.response: Any = None
        self._when_done: Callable[[Any], None] | None = None

    def complete(self, response: Any) -> None:
        """Deliver the response; a second one is a mistake, and raises RuntimeError."""
        if self.done:
            raise RuntimeError("this reply was completed before")
        self.done = True
        self.response = response
        when_done = self._when_done
        if when_done is not None:
            # Who waits may know of this reply, and would be left to the garbage collector with it.
            self._when_done = None
            when_done(response)

    def complete_once(self, response: Any) -> None:
        """Deliver the response, unless there has been one."""
        if not self.done:
            self.complete(response)

    def when_done(self, callback: Callable[[Any], None]) -> None:
        """Call back with the response, at once if it is there."""
        if self.done:
            callback(self.response)
        else:
            self._when_done = callback
