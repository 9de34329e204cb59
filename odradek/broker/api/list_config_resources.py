"""ListConfigResources, versions 0 and 1 (KIP-1142): the resources with configs, by type. Without types: all supported ones.

Version 0 was ListClientMetricsResources (KIP-714): its canonical request asks for CLIENT_METRICS alone. An unknown type is
UNSUPPORTED_VERSION.
"""

from typing import TYPE_CHECKING

from odradek.broker.large import answer_in_slices, with_pauses
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.common.config.dynamic import ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import TopicServices
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext


_SUPPORTED = tuple(ResourceType)

has_unbounded_response = True


def handle(
    services: "TopicServices", context: "RequestContext", request: ListConfigResourcesRequest
) -> "Answer[ListConfigResourcesResponse]":
    """List the resources of the requested types, in slices."""
    types = set(request.resource_types or _SUPPORTED)
    if not types <= set(_SUPPORTED):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return answer_in_slices(services, context, _list(services, types))


def _list(services: "TopicServices", types: set[int]) -> "Generator[None, None, ListConfigResourcesResponse]":
    image = services.controller.image
    names = {
        ResourceType.TOPIC: list(image.topics),
        ResourceType.BROKER: [str(services.node_id)],
        ResourceType.BROKER_LOGGER: [str(services.node_id)],
        ResourceType.CLIENT_METRICS: image.configured(ResourceType.CLIENT_METRICS),
        ResourceType.GROUP: image.configured(ResourceType.GROUP),
    }
    found = [(name, resource_type) for resource_type in _SUPPORTED if resource_type in types for name in names[resource_type]]
    resources = yield from with_pauses(found, lambda each: ConfigResource(*each))
    return ListConfigResourcesResponse(config_resources=resources)


rule = on_cluster(AclOperation.DESCRIBE_CONFIGS)
