"""The end of a turn of the event loop: open batches are appended, and what follows an answer is done.

One scheduled call for all of it. It runs when everything that arrived in this turn has been handled and the answers have been
handed on, and before the loop looks for new requests: event loops run what is called soon before they poll again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class TurnEnd:
    """The callbacks for the end of this turn, in order. Loop thread only."""

    __slots__ = ("_call_soon", "_callbacks", "_on_fault")

    def __init__(self, call_soon: Callable[[Callable[[], None]], None], on_fault: Callable[[str, Exception], None]) -> None:
        self._call_soon = call_soon
        self._on_fault = on_fault
        self._callbacks: list[Callable[[], object]] = []

    def call(self, callback: Callable[[], object]) -> None:
        """Call back when the turn ends. A callback that raises does not keep the others from being called."""
        self._callbacks.append(callback)
        if len(self._callbacks) == 1:
            self._call_soon(self.run)

    def run(self) -> None:
        """End the turn. A callback added meanwhile is for the next one."""
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback()
            except Exception as error:  # noqa: BLE001  it is not the fault of the others
                self._on_fault("a callback at the end of a turn failed", error)
