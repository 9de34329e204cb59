"""The APIs of share partitions and streams groups (KIP-932, KIP-1071): all are answered UNSUPPORTED_VERSION.

Apache Kafka answers the same when the features share.version and streams.version are off. Like Kafka, ApiVersions lists these
APIs all the same. If they were missing, a client such as librdkafka might wait for ever for a broker that has them; a refused
client tells its user at once. The error is set for each group in the request, or at the top of the response.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import allow_all
from odradek.protocol.error_answers import error_answer
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.common.context import RequestContext


def handle(_services: object, context: "RequestContext", request: object) -> object:
    """Refuse ``request``, whose API is in ``REFUSED``."""
    return error_answer(context.api_key, request, ErrorCode.UNSUPPORTED_VERSION)


# No authorization: the APIs are refused to every client.
rule = allow_all
