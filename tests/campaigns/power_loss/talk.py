"""Clients that ask a broker and are answered, one by one or many at a time.

A client is a coroutine that awaits the response to each of its requests (``ask``). Its code after a response runs when the
response is given: what it notes then, it notes before anything else happens to the disk. Its next request comes in a later turn
of the loop, as through a socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.timing.reply import Reply
from tests.campaigns.power_loss.node import Question

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

    from odradek.protocol.api_keys import ApiKey
    from tests.campaigns.power_loss.node import Node

Client = "Coroutine[Question, Any, Any]"


class _Ask:
    """Awaited, it gives the response."""

    __slots__ = ("_question",)

    def __init__(self, question: Question) -> None:
        self._question = question

    def __await__(self) -> Generator[Question, Any, Any]:
        response = yield self._question
        return response


def ask(api_key: ApiKey, version: int, request: Any) -> _Ask:
    """One request. To be awaited by a client."""
    return _Ask(Question(api_key, version, request))


class Talk:
    """A client under way with a broker. ``result`` is what it returned."""

    def __init__(self, node: Node, client: Coroutine[Question, Any, Any]) -> None:
        self.is_over = False
        self.result: Any = None
        self._error: Exception | None = None
        self._node = node
        self._client = client
        self._go_on(None)

    def _go_on(self, response: Any) -> None:
        if self.is_over:
            return
        try:
            question = self._client.send(response)
        except StopIteration as end:
            self.is_over = True
            self.result = end.value
        except Exception as error:  # noqa: BLE001  the broker's code, which calls this, is not to see it
            self.is_over = True
            self._error = error
        else:
            self._node.loop.call_soon(self._ask, question)

    def _ask(self, question: Question) -> None:
        if not self._node.is_running:
            self.close()
        elif not self.is_over:
            response = self._node.handle(question)
            if isinstance(response, Reply):
                response.when_done(self._go_on)
            else:
                self._go_on(response)

    def ensure_good(self) -> None:
        """Raise what the client has raised."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Ask no more: the broker is gone."""
        if not self.is_over:
            self.is_over = True
            self._client.close()
