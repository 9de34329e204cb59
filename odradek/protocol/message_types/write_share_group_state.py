"""WriteShareGroupState up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class StateBatch(NamedTuple):
    """Part of the WriteShareGroupState request."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


class PartitionData(NamedTuple):
    """Part of the WriteShareGroupState request."""

    partition: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: Sequence[StateBatch] = ()


class WriteStateData(NamedTuple):
    """Part of the WriteShareGroupState request."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class WriteShareGroupStateRequest(NamedTuple):
    """The WriteShareGroupState request."""

    group_id: str = ""
    topics: Sequence[WriteStateData] = ()


class PartitionResult(NamedTuple):
    """Part of the WriteShareGroupState response."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


class WriteStateResult(NamedTuple):
    """Part of the WriteShareGroupState response."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionResult] = ()


class WriteShareGroupStateResponse(NamedTuple):
    """The WriteShareGroupState response."""

    results: Sequence[WriteStateResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "StateBatch": StateBatch,
    "PartitionData": PartitionData,
    "WriteStateData": WriteStateData,
    "WriteShareGroupStateRequest": WriteShareGroupStateRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "PartitionResult": PartitionResult,
    "WriteStateResult": WriteStateResult,
    "WriteShareGroupStateResponse": WriteShareGroupStateResponse,
}
