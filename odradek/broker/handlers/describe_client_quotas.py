"""DescribeClientQuotas, versions 0 and 1: the quotas of the entities that a filter selects (KIP-546, ip entities KIP-612).

Deliberate gap: none. A filter that cannot be is answered at the top, with null for entries, as Kafka answers it.
"""

from typing import TYPE_CHECKING

from odradek.broker.metadata.client_quota_requests import describe
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.handlers.services import MetadataServices


def handle(
    services: "MetadataServices", _context: "RequestContext", request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Describe what the filter of ``request`` selects."""
    try:
        entries = describe(services.controller.image.quotas, request)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.reason, entries=None)
    return DescribeClientQuotasResponse(error_message="", entries=entries)
