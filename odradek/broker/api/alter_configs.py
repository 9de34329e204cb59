"""AlterConfigs, versions 0 to 2: replaces all overrides of a resource by the given ones.

Superseded by IncrementalAlterConfigs (KIP-339) and kept for old clients. It has the same errors. It never supported
BROKER_LOGGER.
"""

from typing import TYPE_CHECKING

from odradek.broker.api import config_alteration
from odradek.broker.api.config_alteration import alter
from odradek.controller.metadata.alterations import SET, Alteration, Operation
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.alter_configs import AlterConfigsRequest, AlterConfigsResource, AlterConfigsResponse

if TYPE_CHECKING:
    from odradek.broker.api.services import ControllerServices
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply


def handle(
    services: "ControllerServices", _context: "RequestContext", request: AlterConfigsRequest
) -> "Reply[AlterConfigsResponse]":
    """Replace the overrides of each resource of ``request`` independently."""
    alterations = [_alteration(resource) for resource in request.resources]
    return alter(services, ApiKey.ALTER_CONFIGS, request, alterations)


def _alteration(resource: AlterConfigsResource) -> Alteration:
    operations = [Operation(config.name, SET, config.value) for config in resource.configs]
    return Alteration(resource.resource_type, resource.resource_name, operations, replaces=True)


rule = config_alteration.rule
