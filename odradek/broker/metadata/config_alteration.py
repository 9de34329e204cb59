"""What AlterConfigs and IncrementalAlterConfigs share: each resource of a request is altered, and answered, by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.broker.config.dynamic import ConfigView
from odradek.broker.metadata.alterations import Alteration, alter_resources

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.server import Broker
    from odradek.protocol.messages import Messages


def alter(broker: Broker, m: Messages, request: Any, alteration_of: Callable[[Any], Alteration]) -> Any:
    """Carry out ``request``, whose resources mean ``alteration_of`` each, and answer it in the messages ``m`` of its API."""
    image = broker.controller.image
    answers = alter_resources(
        ConfigView(broker.config, image.configs, image.topics.__contains__),
        [alteration_of(resource) for resource in request.resources],
        None if request.validate_only else broker.controller.alter_configs,
    )
    return m.response(
        responses=[
            m.AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, (code, message) in zip(request.resources, answers, strict=True)
        ]
    )
