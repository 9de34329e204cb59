"""DescribeUserScramCredentials, version 0: which users have SCRAM credentials, of which mechanisms and iterations (KIP-554)."""

from typing import TYPE_CHECKING

from odradek.broker.handlers.in_slices import answer_in_slices, with_pauses
from odradek.broker.metadata.scram_credentials import ScramDescriptions
from odradek.protocol.message_types.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.context import RequestContext
    from odradek.broker.handlers.in_slices import Answer
    from odradek.broker.handlers.services import SlicedMetadataServices


def handle(
    services: "SlicedMetadataServices", context: "RequestContext", request: DescribeUserScramCredentialsRequest
) -> "Answer[DescribeUserScramCredentialsResponse]":
    """Describe the users of ``request``, or all, in slices."""
    return answer_in_slices(services, context, _describe(services, request))


def _describe(
    services: "SlicedMetadataServices", request: DescribeUserScramCredentialsRequest
) -> "Generator[None, None, DescribeUserScramCredentialsResponse]":
    users = ScramDescriptions(services.controller.image, [user.name for user in request.users or ()])
    results = yield from with_pauses(users.asked, users.describe)
    return DescribeUserScramCredentialsResponse(error_message="", results=results)
