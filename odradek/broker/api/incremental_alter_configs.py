"""IncrementalAlterConfigs, versions 0 and 1 (KIP-339): sets, deletes, appends to and subtracts from single overrides.

Resources: topics, groups, client metrics, this broker, and the cluster-wide broker default (the name ""). Each resource succeeds
or fails as a whole; a success is one batch of the metadata log. INVALID_CONFIG for an unknown topic config or an invalid value,
and for appending to a config that is not a list; INVALID_REQUEST for an invalid broker config, for a key named twice and for a
null; UNKNOWN_TOPIC_OR_PARTITION.

Deliberate gaps: no ``alter.config.policy.class.name``; BROKER_LOGGER has no loggers to set. An unknown operation is
INVALID_REQUEST for topics as for brokers, where Kafka runs into a null pointer.
"""

from typing import TYPE_CHECKING

from odradek.broker.api import config_alteration
from odradek.broker.api.config_alteration import alter
from odradek.controller.metadata.alterations import Alteration, Operation
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import ControllerServices
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply


def handle(
    services: "ControllerServices", _context: "RequestContext", request: IncrementalAlterConfigsRequest
) -> "Reply[IncrementalAlterConfigsResponse]":
    """Alter the overrides of each resource of ``request`` independently."""
    alterations = [_alteration(resource) for resource in request.resources]
    return alter(services, ApiKey.INCREMENTAL_ALTER_CONFIGS, request, alterations)


def _alteration(resource: AlterConfigsResource) -> Alteration:
    operations = [Operation(config.name, config.config_operation, config.value) for config in resource.configs]
    return Alteration(resource.resource_type, resource.resource_name, operations)


rule = config_alteration.rule
