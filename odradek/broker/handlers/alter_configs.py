"""AlterConfigs, versions 0 to 2: the overrides of a resource become exactly those given, and the others it had go.

Superseded by IncrementalAlterConfigs (KIP-339) and kept for old clients. Errors as there; BROKER_LOGGER was never served by it.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.config.alterations import SET, Alteration, Operation, alter_resources
from odradek.broker.config.dynamic import ConfigView
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker

M = messages(ApiKey.ALTER_CONFIGS)


def handle(broker: "Broker", context: "RequestContext", request: Any) -> Any:  # noqa: ARG001
    """Replace the overrides of every resource of ``request``, each by itself."""
    image = broker.controller.image
    answers = alter_resources(
        ConfigView(broker.config, image.configs, image.topics.__contains__),
        [
            Alteration(
                resource.resource_type,
                resource.resource_name,
                [Operation(config.name, SET, config.value) for config in resource.configs],
                replaces=True,
            )
            for resource in request.resources
        ],
        None if request.validate_only else broker.controller.alter_configs,
    )
    return M.AlterConfigsResponse(
        responses=[
            M.AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, (code, message) in zip(request.resources, answers, strict=True)
        ]
    )
