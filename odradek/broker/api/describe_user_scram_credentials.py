"""DescribeUserScramCredentials, version 0: users with SCRAM credentials, their mechanisms and iterations (KIP-554)."""

from typing import TYPE_CHECKING

from odradek.broker.large import answer_in_slices, with_pauses
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.controller.metadata.scram_credentials import ScramDescriptions
from odradek.protocol.message_types.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import SlicedMetadataServices
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext

has_unbounded_response = True


def handle(
    services: "SlicedMetadataServices", context: "RequestContext", request: DescribeUserScramCredentialsRequest
) -> "Answer[DescribeUserScramCredentialsResponse]":
    """Describe the users of ``request``, or all users, in slices."""
    return answer_in_slices(services, context, _describe(services, request))


def _describe(
    services: "SlicedMetadataServices", request: DescribeUserScramCredentialsRequest
) -> "Generator[None, None, DescribeUserScramCredentialsResponse]":
    users = ScramDescriptions(services.controller.image, [user.name for user in request.users or ()])
    results = yield from with_pauses(users.asked, users.describe)
    return DescribeUserScramCredentialsResponse(error_message="", results=results)


rule = on_cluster(AclOperation.DESCRIBE)
