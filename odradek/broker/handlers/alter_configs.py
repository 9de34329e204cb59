"""AlterConfigs, versions 0 to 2: the overrides of a resource become exactly those given, and the others it had go.

Superseded by IncrementalAlterConfigs (KIP-339) and kept for old clients. Errors as there; BROKER_LOGGER was never served by it.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.metadata.alterations import SET, Alteration, Operation
from odradek.broker.metadata.config_alteration import alter
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker

M = messages(ApiKey.ALTER_CONFIGS)


def handle(broker: "Broker", context: "RequestContext", request: Any) -> Any:  # noqa: ARG001
    """Replace the overrides of every resource of ``request``, each by itself."""
    return alter(broker, M, request, _alteration)


def _alteration(resource: Any) -> Alteration:
    operations = [Operation(config.name, SET, config.value) for config in resource.configs]
    return Alteration(resource.resource_type, resource.resource_name, operations, replaces=True)
