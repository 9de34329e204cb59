"""A request on its way through its rule to its handler."""

from collections.abc import Callable, Generator, Iterable
from itertools import compress
from typing import Any, NamedTuple, TypeAlias, TypeVar

from odradek.broker.authorizer.access import Access
from odradek.broker.authorizer.acls import AclOperation, AclResourceType
from odradek.broker.context import Handler, RequestContext, Signal
from odradek.broker.handlers.in_slices import answer_in_slices, with_pauses
from odradek.timing.reply import Reply

ItemT = TypeVar("ItemT")


class Asked(NamedTuple):
    """A request, its client's rights, and the handler behind the rule with the services that it gets."""

    access: Access
    services: Any
    context: RequestContext
    request: Any
    handler: Handler

    def handle(self, request: Any = None, services: Any = None) -> Any:
        """The handler's answer to the request, or to another in its place."""
        return self.handler(
            self.services if services is None else services, self.context, self.request if request is None else request
        )

    def split(
        self,
        operation: AclOperation,
        resource_type: AclResourceType,
        items: Iterable[ItemT],
        name_of: Callable[[ItemT], str | None],
    ) -> tuple[list[ItemT], list[ItemT]]:
        """The items that the client may do this to, and the others. One without a name is for the handler to refuse."""
        named = [(item, name_of(item)) for item in items]
        allowed = self.access.allowed(operation, resource_type, [name for _, name in named if name is not None])
        permitted: list[ItemT] = []
        refused: list[ItemT] = []
        for item, name in named:
            (permitted if name is None or name in allowed else refused).append(item)
        return permitted, refused


# Answers a request as a handler does.
Rule: TypeAlias = Callable[[Asked], Any]


def then(outcome: Any, convert: Callable[[Any], Any], *, converts_signals: bool = False) -> Any:
    """Return ``convert(response)``, now or as a Reply; ``convert`` may return a Reply itself.

    An exception stays as it is, and so does a signal unless ``converts_signals``.
    """
    if not isinstance(outcome, Reply):
        is_kept = isinstance(outcome, Exception) or (isinstance(outcome, Signal) and not converts_signals)
        return outcome if is_kept else convert(outcome)
    if outcome.done:
        return then(outcome.response, convert, converts_signals=converts_signals)
    reply: Reply[Any] = Reply()
    reply.is_decided = outcome.is_decided

    def finish(response: Any) -> None:
        try:
            response = then(response, convert, converts_signals=converts_signals)
        except Exception as error:  # noqa: BLE001  a fault of ours, which dispatch tells
            response = error
        if isinstance(response, Reply):
            response.when_done(reply.complete)
        else:
            reply.complete(response)

    outcome.when_done(finish)
    return reply


def only(asked: Asked, outcome: Any, field: str, may_see: Callable[[Any], bool]) -> Any:
    """The response with those items of its array ``field`` that ``may_see``. There may be many: they are looked at in slices."""

    def work(response: Any) -> Generator[None, None, Any]:
        items = getattr(response, field)
        seen = yield from with_pauses(items, may_see)
        return response._replace(**{field: list(compress(items, seen))})

    return then(outcome, lambda response: answer_in_slices(asked.services, asked.context, work(response)))


def with_refused(outcome: Any, field: str, refused: list[Any]) -> Any:
    """The response with ``refused`` behind what its array ``field`` has; one with an error of its own says that only."""

    def joined(response: Any) -> Any:
        if getattr(response, "error_code", 0):
            return response
        return response._replace(**{field: [*getattr(response, field), *refused]})

    return then(outcome, joined) if refused else outcome
