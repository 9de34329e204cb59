"""ListConfigResources, versions 0 and 1 (KIP-1142): what there is to describe, by type; all that is supported without one.

Version 0 was ListClientMetricsResources (KIP-714): the canonical request asks for CLIENT_METRICS alone then. Of those, and of
groups with configs, there are none. A type nobody knows is UNSUPPORTED_VERSION.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.config.dynamic import ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker

M = messages(ApiKey.LIST_CONFIG_RESOURCES)

_SUPPORTED = tuple(ResourceType)


def handle(broker: "Broker", context: "RequestContext", request: Any) -> Any:  # noqa: ARG001
    """List the resources of the types asked for."""
    types = set(request.resource_types or _SUPPORTED)
    if not types <= set(_SUPPORTED):
        return M.ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    names = {
        ResourceType.TOPIC: list(broker.controller.image.topics),
        ResourceType.BROKER: [str(broker.node_id)],
        ResourceType.BROKER_LOGGER: [str(broker.node_id)],
    }
    return M.ListConfigResourcesResponse(
        config_resources=[
            M.ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type in _SUPPORTED
            if resource_type in types
            for name in names.get(resource_type, ())
        ]
    )
