"""OffsetFetch up to version 10. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class OffsetFetchRequestTopics(NamedTuple):
    """Part of the OffsetFetch request."""

    topic_id: UUID | None = None
    partition_indexes: Sequence[int] = ()
    name: str = ""


class OffsetFetchRequestGroup(NamedTuple):
    """Part of the OffsetFetch request."""

    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: Sequence[OffsetFetchRequestTopics] | None = ()


class OffsetFetchRequest(NamedTuple):
    """The OffsetFetch request."""

    groups: Sequence[OffsetFetchRequestGroup] = ()
    require_stable: bool = False


class OffsetFetchResponsePartitions(NamedTuple):
    """Part of the OffsetFetch response."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = None
    error_code: int = 0


class OffsetFetchResponseTopics(NamedTuple):
    """Part of the OffsetFetch response."""

    topic_id: UUID | None = None
    partitions: Sequence[OffsetFetchResponsePartitions] = ()
    name: str = ""


class OffsetFetchResponseGroup(NamedTuple):
    """Part of the OffsetFetch response."""

    group_id: str = ""
    topics: Sequence[OffsetFetchResponseTopics] = ()
    error_code: int = 0


class OffsetFetchResponse(NamedTuple):
    """The OffsetFetch response."""

    throttle_time_ms: int = 0
    groups: Sequence[OffsetFetchResponseGroup] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "OffsetFetchRequestTopics": OffsetFetchRequestTopics,
    "OffsetFetchRequestGroup": OffsetFetchRequestGroup,
    "OffsetFetchRequest": OffsetFetchRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "OffsetFetchResponsePartitions": OffsetFetchResponsePartitions,
    "OffsetFetchResponseTopics": OffsetFetchResponseTopics,
    "OffsetFetchResponseGroup": OffsetFetchResponseGroup,
    "OffsetFetchResponse": OffsetFetchResponse,
}
