"""DescribeConfigs, versions 1 to 4: the configs of topics, of this broker, of the cluster-wide broker default, of groups.

Synonyms since version 1 (KIP-226), types and documentation since 3 (KIP-569). A resource that cannot be described gets an error,
and the others are answered: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, and INVALID_REQUEST for another broker than
this one, or for a group or client metrics subscription without a name. A non-empty list of keys limits the answer to those keys.

Deliberate gaps: there are no loggers with Kafka's names, so BROKER_LOGGER is an empty list. The configs of share and streams
groups (KIP-932, KIP-1071) are Kafka's defaults and the set values.
"""

from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any

from odradek.broker.api.config_alteration import refusal, split_resources
from odradek.broker.large import Pieces, Repeated, answer_in_slices, each_once
from odradek.broker.security.acl.rules import GuardedRequest, with_refused
from odradek.common.acls import AclOperation
from odradek.common.config.describe import (
    ConfigEntry,
    ConfigSource,
    broker_entries,
    cluster_default_entries,
    group_entries,
    other_entries,
    topic_entries,
)
from odradek.common.config.dynamic import ConfigView, ResourceType
from odradek.common.config.table_groups import CLIENT_METRICS_DEFINITIONS, GROUP_DEFINITIONS
from odradek.controller.metadata.topic import validate_topic_name
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import TopicServices
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply

pieces = Pieces(("resources",), ("results",), 10, Repeated.ALIKE)
has_unbounded_response = True


def handle(
    services: "TopicServices", context: "RequestContext", request: DescribeConfigsRequest
) -> "Answer[DescribeConfigsResponse]":
    """Describe each resource of ``request`` independently, in slices."""
    return answer_in_slices(services, context, _describe_all(services, request))


def _describe_all(
    services: "TopicServices", request: DescribeConfigsRequest
) -> "Generator[Reply[Any] | None, Any, DescribeConfigsResponse]":
    image = services.controller.image
    view = ConfigView(services.config, image.configs, image.topics.__contains__)
    results = yield from each_once(request.resources, lambda resource: _describe(view, resource, request))
    return DescribeConfigsResponse(results=results)


def _describe(
    view: ConfigView, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> "Generator[Reply[Any] | None, Any, DescribeConfigsResult]":
    yield from ()
    resource_type, name = resource.resource_type, resource.resource_name
    try:
        entries = _entries(view, resource_type, name)
    except KafkaError as error:
        return DescribeConfigsResult(
            error_code=error.code, error_message=error.reason, resource_type=resource_type, resource_name=name
        )
    keys = resource.configuration_keys
    configs = [
        _result_of(entry, synonyms=request.include_synonyms, documentation=request.include_documentation)
        for entry in entries
        if not keys or entry.name in keys
    ]
    return DescribeConfigsResult(error_message="", resource_type=resource_type, resource_name=name, configs=configs)


def _entries(view: ConfigView, resource_type: int, name: str) -> Iterable[ConfigEntry]:
    match resource_type:
        case ResourceType.TOPIC:
            validate_topic_name(name)
            if not view.topic_exists(name):
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return topic_entries(view, view.overrides(resource_type, name))
        case ResourceType.BROKER if not name:
            return cluster_default_entries(view)
        case ResourceType.BROKER:
            _check_broker(view, name, f"expected {view.node_id} or empty string, but received {name}")
            return broker_entries(view)
        case ResourceType.BROKER_LOGGER:
            if not name:
                raise _invalid_request("Broker id must not be empty")
            _check_broker(view, name, f"expected {view.node_id} but received {name}")
            return ()
        case ResourceType.GROUP:
            if not name:
                raise _invalid_request("Group name must not be empty")
            return group_entries(view, GROUP_DEFINITIONS, view.overrides(resource_type, name))
        case ResourceType.CLIENT_METRICS:
            if not name:
                raise _invalid_request("Client metrics subscription name must not be empty")
            overrides = view.overrides(resource_type, name)
            return other_entries(CLIENT_METRICS_DEFINITIONS, overrides, ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG)
        case _:
            raise _invalid_request(f"Unsupported resource type: {resource_type}")


def _check_broker(view: ConfigView, name: str, expectation: str) -> None:
    if not name.removeprefix("-").isdecimal():
        raise _invalid_request(f"Broker id must be an integer, but it is: {name}")
    if name != view.node_id:
        raise _invalid_request(f"Unexpected broker id, {expectation}")


def _invalid_request(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)


def _result_of(entry: ConfigEntry, *, synonyms: bool, documentation: bool) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source) for each in entry.synonyms]
        if synonyms
        else [],
        config_type=entry.type,
        documentation=entry.documentation if documentation else None,
    )


def rule(guarded: "GuardedRequest") -> object:
    """Require DESCRIBE_CONFIGS on each topic or group; for brokers and client metrics, on the cluster."""
    permitted, others = split_resources(guarded, AclOperation.DESCRIBE_CONFIGS, guarded.request.resources)
    told = [refusal(DescribeConfigsResult, resource) for resource in others]
    if told and not permitted:
        return DescribeConfigsResponse(results=told)
    return with_refused(guarded.handle(guarded.request._replace(resources=permitted) if told else None), "results", told)
