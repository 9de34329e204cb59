"""AlterClientQuotas, versions 0 and 1: sets and removes quotas of users, client ids and IP addresses (KIP-546, KIP-612).

An ip entity may be given as a host name, which is looked up first, as in Kafka. Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.common.host_names import is_address, look_up
from odradek.controller.metadata.client_quota_requests import host_names
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.error_answers import error_answer
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse, EntryData
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Collection

    from odradek.broker.api.services import ControllerServices
    from odradek.common.context import RequestContext


def handle(
    services: "ControllerServices", _context: "RequestContext", request: AlterClientQuotasRequest
) -> Reply[AlterClientQuotasResponse]:
    """Alter each entity of ``request`` independently."""
    hosts = [name for name in host_names(request.entries) if not is_address(name)]
    if not hosts:
        return _altered(services, request, ())
    reply: Reply[AlterClientQuotasResponse] = Reply()

    def alter(found: dict[str, str | None]) -> None:
        unknown = {name for name, address in found.items() if address is None}
        _altered(services, request, unknown).when_done(reply.complete)

    look_up(hosts).when_done(alter)
    return reply


def _altered(
    services: "ControllerServices", request: AlterClientQuotasRequest, unknown_hosts: "Collection[str]"
) -> Reply[AlterClientQuotasResponse]:
    def answer(outcome: list[EntryData] | KafkaError) -> AlterClientQuotasResponse:
        if isinstance(outcome, KafkaError):
            failed: AlterClientQuotasResponse = error_answer(ApiKey.ALTER_CLIENT_QUOTAS, request, outcome.code, outcome.reason)
            return failed
        return AlterClientQuotasResponse(entries=outcome)

    return services.controller.alter_client_quotas(request, unknown_hosts).then(answer)


rule = on_cluster(AclOperation.ALTER_CONFIGS)
