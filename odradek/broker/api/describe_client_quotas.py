"""DescribeClientQuotas, versions 0 and 1: the quotas of the entities that a filter matches (KIP-546, ip entities KIP-612).

Deliberate gap: none. An invalid filter gets a top-level error with null for entries, as in Kafka.
"""

from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.large import answer_in_slices, with_pauses
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.controller.metadata.client_quota_requests import QuotaFilter
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import SlicedMetadataServices
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext

has_unbounded_response = True


def handle(
    services: "SlicedMetadataServices", context: "RequestContext", request: DescribeClientQuotasRequest
) -> "Answer[DescribeClientQuotasResponse]":
    """Describe the quotas that the filter of ``request`` matches, in slices."""
    try:
        selected = QuotaFilter(request)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.reason, entries=None)
    return answer_in_slices(services, context, _describe(services, selected))


def _describe(services: "SlicedMetadataServices", selected: QuotaFilter) -> "Generator[None, None, DescribeClientQuotasResponse]":
    quotas = services.controller.image.quotas
    entries = yield from with_pauses(list(quotas), partial(selected.describe, quotas))
    return DescribeClientQuotasResponse(error_message="", entries=[entry for entry in entries if entry is not None])


rule = on_cluster(AclOperation.DESCRIBE_CONFIGS)
