"""The APIs of share and streams groups (KIP-932, KIP-1071): each is answered UNSUPPORTED_VERSION.

That is what Apache Kafka answers where the features share.version and streams.version are off. It has the APIs in
ApiVersions all the same: a client that finds them missing there may wait for ever for a broker that has them, as librdkafka does,
and one that is refused tells its user at once. The error stands beside each group that a request names, or above the response.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.authorization import anybody
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.handlers.services import GroupServices

_CODE = ErrorCode.UNSUPPORTED_VERSION
# Only the APIs that change a share group's offsets say more than the code.
_WITH_MESSAGE = (ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS)
_DESCRIBING = (ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.STREAMS_GROUP_DESCRIBE)

# Null tells a member of a streams group to keep the tasks that it has; an empty list would take them away.
_NO_TASKS = dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks", "partitions_by_user_endpoint"))


def handle(_services: "GroupServices", context: "RequestContext", request: Any) -> Any:  # noqa: ANN401  of several APIs
    """Refuse ``request``, of one of ``handlers.REFUSED``."""
    api_key = context.api_key
    classes = messages(api_key)
    if api_key in _DESCRIBING:
        groups = [classes.DescribedGroup(error_code=_CODE, group_id=group_id) for group_id in request.group_ids]
        return classes.response(groups=groups)
    if api_key is ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS:
        of_group = classes.DescribeShareGroupOffsetsResponseGroup
        return classes.response(groups=[of_group(error_code=_CODE, group_id=group.group_id) for group in request.groups])
    if api_key in _WITH_MESSAGE:
        return classes.response(error_code=_CODE, error_message="The version of API is not supported.")
    if api_key is ApiKey.STREAMS_GROUP_HEARTBEAT:
        return classes.response(error_code=_CODE, **_NO_TASKS)
    return classes.response(error_code=_CODE)


# They are refused whoever asks.
rule = anybody
