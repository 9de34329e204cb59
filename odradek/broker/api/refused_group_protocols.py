"""The APIs of share and streams groups (KIP-932, KIP-1071): each is answered UNSUPPORTED_VERSION.

That is what Apache Kafka answers where the features share.version and streams.version are off. It has the APIs in
ApiVersions all the same: a client that finds them missing there may wait for ever for a broker that has them, as librdkafka does,
and one that is refused tells its user at once. The error stands beside each group that a request names, or above the response.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import anybody
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.error_answers import error_answer
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.common.context import RequestContext

# Only the APIs that change a share group's offsets say more than the code.
_WITH_MESSAGE = (ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS)


def handle(_services: object, context: "RequestContext", request: object) -> object:
    """Refuse ``request``, of one of ``handlers.REFUSED``."""
    reason = "The version of API is not supported." if context.api_key in _WITH_MESSAGE else None
    return error_answer(context.api_key, request, ErrorCode.UNSUPPORTED_VERSION, reason)


# They are refused whoever asks.
rule = anybody
