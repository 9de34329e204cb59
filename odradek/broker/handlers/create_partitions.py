"""CreatePartitions, versions 0 to 3: a topic's number of partitions is raised; it cannot be lowered.

Each topic is answered by itself; with ``validate_only`` nothing else happens. Deliberate gaps: no quota on controller
mutations (KIP-599); ``timeout_ms`` is never reached.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.metadata.decisions import NewPartitions, TopicResult
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker

M = messages(ApiKey.CREATE_PARTITIONS)


def handle(broker: "Broker", context: "RequestContext", request: Any) -> Any:  # noqa: ARG001
    """Add, or only validate, the partitions of ``request``."""
    asked = [_new_partitions(topic) for topic in request.topics]
    try:
        results = broker.controller.create_partitions(asked, validate_only=request.validate_only)
    except KafkaError as error:
        results = [TopicResult(name=topic.name, error=error) for topic in asked]
    return M.CreatePartitionsResponse(results=[_answer(result) for result in results])


def _new_partitions(topic: Any) -> NewPartitions:
    assignments = topic.assignments
    return NewPartitions(
        name=topic.name,
        partition_count=topic.count,
        assignments=None if assignments is None else [assignment.broker_ids for assignment in assignments],
    )


def _answer(result: TopicResult) -> Any:
    if result.error is None:
        return M.CreatePartitionsTopicResult(name=result.name, error_code=ErrorCode.NONE)
    return M.CreatePartitionsTopicResult(
        name=result.name, error_code=result.error.code, error_message=result.error.reason or None
    )
