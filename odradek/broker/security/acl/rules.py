"""The building blocks of authorization rules. An API's rule runs before its handler if there is an authorizer.

Each API's module has its ``rule``. Rules check what Kafka checks, in the same order, with the same error codes. If some items of
a request are refused, the handler gets the others, and the refusals are appended to its response. A client without the right to
know of a resource is refused before the broker looks whether the resource exists.

Source: ``KafkaApis``, ``ControllerApis`` and ``AclApis`` of Apache Kafka 4.
"""

from collections.abc import Callable, Generator, Iterable
from functools import partial
from itertools import compress
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from odradek.broker.large import answer_in_slices, with_pauses
from odradek.broker.security.acl.access import Access, Authorization
from odradek.common.acls import AclOperation, AclResourceType
from odradek.common.context import Handler, RequestContext, Signal
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.error_answers import error_answer, error_items
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from odradek.timing.reply import Reply

ItemT = TypeVar("ItemT")

_REASONS: Final = {ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "The client may not do this to the cluster."}


class GuardedRequest(NamedTuple):
    """A request, its client's rights, and the handler behind the rule with its services."""

    access: Access
    services: Any
    context: RequestContext
    request: Any
    handler: Handler

    def handle(self, request: Any = None) -> Any:
        """Return the handler's answer to the request, or to ``request`` in its place."""
        return self.handler(self.services, self.context, self.request if request is None else request)

    def allows(self, operation: AclOperation, resource_type: AclResourceType, name: str) -> bool:
        """Return whether the client may do this. A refusal is logged."""
        return self.access.allows(operation, resource_type, name)

    def refused(self, code: ErrorCode, **fields: object) -> Any:
        """Return the response that refuses the whole request with ``code``. ``fields`` override the response's fields."""
        answer = error_answer(self.context.api_key, self.request, code, _REASONS.get(code))
        return answer._replace(**fields) if fields else answer

    def split(
        self,
        operation: AclOperation,
        resource_type: AclResourceType,
        items: Iterable[ItemT],
        name_of: Callable[[ItemT], str | None],
    ) -> tuple[tuple[ItemT, ...], tuple[ItemT, ...]]:
        """Split items into permitted and refused. Items without a name count as permitted: the handler refuses them.

        The parts are tuples, like the arrays of a decoded request: handlers may look an item up by its value.
        """
        named = [(item, name_of(item)) for item in items]
        allowed = self.access.allowed(operation, resource_type, [name for _, name in named if name is not None])
        permitted: list[ItemT] = []
        refused: list[ItemT] = []
        for item, name in named:
            (permitted if name is None or name in allowed else refused).append(item)
        return tuple(permitted), tuple(refused)

    def topic_name(self, topic: Any, *, by_id: bool) -> str | None:
        """Return the name of a topic requested by name or id; None for an unknown id."""
        if not by_id:
            return topic.name or ""
        found = None if topic.topic_id is None else self.services.controller.image.topics_by_id.get(topic.topic_id)
        return None if found is None else found.name

    def may_describe_topic(self, name: str) -> bool:
        """Return whether the client may describe a topic that it did not name. Refusals are not logged."""
        return self.access.allows(AclOperation.DESCRIBE, AclResourceType.TOPIC, name, tells=False)


# Answers a request like a handler.
Rule: TypeAlias = Callable[[GuardedRequest], Any]


def allow_all(guarded: GuardedRequest) -> Any:
    """Let every client through: the API needs no right."""
    return guarded.handle()


def on_cluster(operation: AclOperation) -> Rule:
    """Make the rule that requires ``operation`` on the cluster."""

    def rule(guarded: GuardedRequest) -> Any:
        if guarded.access.allows_cluster(operation):
            return guarded.handle()
        return guarded.refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    return rule


def reads_group(guarded: GuardedRequest) -> Any:
    """Require READ on the group."""
    if guarded.allows(AclOperation.READ, AclResourceType.GROUP, guarded.request.group_id):
        return guarded.handle()
    return guarded.refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)


def authorize_each(
    guarded: GuardedRequest,
    operation: AclOperation,
    resource_type: AclResourceType,
    name_of: Callable[[Any], str | None] = str,
    *,
    field: str = "topics",
    answered: str = "topics",
    convert: Callable[[Any], Any] | None = None,
) -> Any:
    """Require ``operation`` on each item of the array ``field``. Refused items go into the response's array ``answered``.

    ``convert`` changes the response of the handler.
    """
    permitted, refused = guarded.split(operation, resource_type, getattr(guarded.request, field), name_of)
    code = ErrorCode[f"{resource_type.name}_AUTHORIZATION_FAILED"]
    told = error_items(guarded.context.api_key, guarded.request._replace(**{field: refused}), answered, code) if refused else []
    response = messages(guarded.context.api_key).response
    # A top-level error code is set by the handler only, so it is called even without items.
    if told and not permitted and not hasattr(response, "error_code"):
        return response(**{answered: told})
    answer = guarded.handle(guarded.request._replace(**{field: permitted}) if told else None)
    return with_refused(answer if convert is None else then(answer, convert), answered, told)


def then(outcome: Any, convert: Callable[[Any], Any], *, converts_signals: bool = False) -> Any:
    """Return ``convert(response)``, now or as a Reply; ``convert`` may return a Reply itself.

    Exceptions are passed on unchanged, and so are signals unless ``converts_signals``.
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
        except Exception as error:  # noqa: BLE001  a bug of ours; dispatch logs it
            response = error
        if isinstance(response, Reply):
            response.when_done(reply.complete)
        else:
            reply.complete(response)

    outcome.when_done(finish)
    return reply


def keep_visible(guarded: GuardedRequest, outcome: Any, field: str, may_see: Callable[[Any], bool]) -> Any:
    """Return the response with the items of array ``field`` that pass ``may_see``, checked in slices since there may be many."""

    def work(response: Any) -> Generator[None, None, Any]:
        items = getattr(response, field)
        seen = yield from with_pauses(items, may_see)
        return response._replace(**{field: list(compress(items, seen))})

    return then(outcome, lambda response: answer_in_slices(guarded.services, guarded.context, work(response)))


def with_refused(outcome: Any, field: str, refused: list[Any]) -> Any:
    """Return the response with ``refused`` appended to its array ``field``; unchanged if it has a top-level error code."""

    def joined(response: Any) -> Any:
        if getattr(response, "error_code", 0):
            return response
        return response._replace(**{field: [*getattr(response, field), *refused]})

    return then(outcome, joined) if refused else outcome


def with_rules(load_module: Callable[[ApiKey], Any], authorization: Authorization) -> Callable[[ApiKey], Handler]:
    """Return a handler loader that puts each API's rule before its handler."""

    def load(api_key: ApiKey) -> Handler:
        module = load_module(api_key)
        handler: Handler = module.handle
        return handler if module.rule is allow_all else partial(_handle, authorization, module.rule, handler)

    return load


def _handle(
    authorization: Authorization, rule: Rule, handler: Handler, services: Any, context: RequestContext, request: Any
) -> Any:
    access = authorization.access(context)
    if access.is_own:
        return handler(services, context, request)
    return rule(GuardedRequest(access, services, context, request, handler))
