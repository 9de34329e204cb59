"""The common part of AlterConfigs and IncrementalAlterConfigs. Each resource is altered and answered independently."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from odradek.broker.security.acl.rules import GuardedRequest, then, with_refused
from odradek.common.acls import CLUSTER_NAME, AclOperation, AclResourceType
from odradek.common.logging import log
from odradek.controller.metadata.alterations import Alteration, Answer, ConfigChange, deciding, failed
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from odradek.broker.api.services import ControllerServices


def alter(services: ControllerServices, api_key: ApiKey, request: Any, alterations: Sequence[Alteration]) -> Reply[Any]:
    """Alter the configs of each resource of ``request``, or only validate that. Many alterations are made in slices."""
    kinds = messages(api_key)

    def respond(answers: list[Answer]) -> Any:
        return kinds.response(
            responses=[
                kinds.AlterConfigsResourceResponse(
                    error_code=code,
                    error_message=message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource, (code, message) in zip(request.resources, answers, strict=True)
            ]
        )

    return _altered(services, alterations, validate_only=request.validate_only).then(respond)


def _altered(services: ControllerServices, alterations: Sequence[Alteration], *, validate_only: bool) -> Reply[list[Answer]]:
    """Return a Reply of the (error code, message) of each alteration. What is to be changed is decided after earlier changes."""
    answers: list[Answer] = []

    def decide_in_turn() -> Generator[Sequence[ConfigChange], None, None]:
        yield from deciding(services.controller.config_view(services.config), alterations, answers)

    work = decide_in_turn()
    done: Reply[Any] = services.slices.run(_only_decide(work)) if validate_only else services.controller.alter_many_configs(work)

    def answer_all(error: Exception | None) -> list[Answer]:
        if error is None:
            return answers
        if not isinstance(error, KafkaError):
            log.error("configs could not be validated", error)
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return failed([*answers, *((ErrorCode.NONE, None) for _ in alterations[len(answers) :])], error)

    reply: Reply[list[Answer]] = Reply()
    done.when_done(lambda error: reply.complete(answer_all(error)))
    return reply


def _only_decide(work: Generator[object, None, None]) -> Generator[None, None, None]:
    for _ in work:
        yield None


_CLUSTER: Final = AclResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_BROKER: Final = 4
_LOGGER: Final = 8
# AlterConfigs does not know loggers.
_LEGACY: Final = ApiKey.ALTER_CONFIGS
# By the type of a config's resource. The handler refuses unknown types.
_RESOURCES: Final = {
    2: (AclResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    _BROKER: _CLUSTER,
    _LOGGER: _CLUSTER,
    16: _CLUSTER,
    32: (AclResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
}
_DELETE: Final = 1


def rule(guarded: GuardedRequest) -> object:
    """Require ALTER_CONFIGS on each topic or group; for brokers and client metrics, on the cluster.

    As in Kafka, malformed requests and invalid broker configs are reported even to clients without permission.
    """
    request = guarded.request
    times_named = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    malformed: list[Any] = []
    sound: list[Any] = []
    for resource in request.resources:
        is_repeated = times_named[resource.resource_type, resource.resource_name] > 1
        is_bad = (
            is_repeated or _is_malformed(resource) or (resource.resource_type == _LOGGER and guarded.context.api_key is _LEGACY)
        )
        (malformed if is_bad else sound).append(resource)
    permitted, others = split_resources(guarded, AclOperation.ALTER_CONFIGS, sound)
    if not others:
        return guarded.handle()
    result = messages(guarded.context.api_key).AlterConfigsResourceResponse
    told = [refusal(result, resource) for resource in others if resource.resource_type != _BROKER]
    answer = with_refused(guarded.handle(request._replace(resources=[*malformed, *permitted])), "responses", told)
    brokers = [resource for resource in others if resource.resource_type == _BROKER]
    if not brokers:
        return answer
    checked = then(
        guarded.handle(request._replace(resources=brokers, validate_only=True)),
        lambda response: response._replace(
            responses=[
                each if each.error_code == ErrorCode.INVALID_REQUEST else refusal(result, each) for each in response.responses
            ]
        ),
    )
    return then(
        answer, lambda first: then(checked, lambda second: second._replace(responses=[*first.responses, *second.responses]))
    )


def _is_malformed(resource: Any) -> bool:
    names = [config.name for config in resource.configs]
    return len(set(names)) < len(names) or any(
        config.value is None and getattr(config, "config_operation", 0) != _DELETE for config in resource.configs
    )


def split_resources(guarded: GuardedRequest, operation: AclOperation, resources: Any) -> tuple[list[Any], list[Any]]:
    """Return the resources on whose configs the client may perform the operation, and the others."""
    permitted: list[Any] = []
    others: list[Any] = []
    for resource in resources:
        known = _RESOURCES.get(resource.resource_type)
        name = CLUSTER_NAME if known is _CLUSTER else resource.resource_name
        is_permitted = known is None or guarded.access.allows(operation, known[0], name)
        (permitted if is_permitted else others).append(resource)
    return permitted, others


def refusal(result: Any, resource: Any) -> Any:
    """Return the answer for one refused resource."""
    return result(
        error_code=_RESOURCES[resource.resource_type][1],
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
