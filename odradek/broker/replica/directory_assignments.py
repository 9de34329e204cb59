"""Tells the controller which data directory of this broker holds each replica (AssignReplicasToDirs, KIP-858).

The controller needs this to know which partitions go offline when a directory fails. One request is in flight at a time.
Assignments that are not accepted are sent again after ``_BACKOFF_MS``, until they are.

Kafka's class is AssignmentsManager.
"""

from collections.abc import Callable, Iterable
from typing import Final
from uuid import UUID

from odradek.broker.replica.controller_requests import ControllerRequests
from odradek.client.api import Api
from odradek.controller.quorum.broker_lifecycle import Controller
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    RequestDirectoryData,
    RequestPartitionData,
    RequestTopicData,
)
from odradek.timing.timer import Timer

_ASSIGN: Final[Api[AssignReplicasToDirsRequest, AssignReplicasToDirsResponse]] = Api(ApiKey.ASSIGN_REPLICAS_TO_DIRS)
_BACKOFF_MS: Final = 500
# Assignments in one request; Kafka's limit.
_MOST: Final = 2_250

Key = tuple[UUID, int]


class DirectoryAssignments:
    """The directory assignments of one broker. Loop thread only."""

    def __init__(self, controller: Controller, timer: Timer, node_id: int, broker_epoch: Callable[[], int]) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._unsent: dict[Key, UUID] = {}
        self._requests = ControllerRequests(
            controller,
            timer,
            has_unsent=lambda: bool(self._unsent),
            send=self._send,
            backoff_ms=_BACKOFF_MS,
            complaint="the controller does not accept replicas' directories; trying again",
        )

    def assign(self, places: Iterable[tuple[UUID, int, UUID]]) -> None:
        """Send the assignments to the controller: (topic id, partition, directory id)."""
        self._unsent.update({(topic_id, partition): directory_id for topic_id, partition, directory_id in places})
        self._requests.wake()

    def close(self) -> None:
        """Stop sending."""
        self._requests.close()

    async def _send(self) -> str:
        """Send as many as one request may have, and return why some are to be sent again."""
        sent = dict(list(self._unsent.items())[:_MOST])
        response = await self._requests.ask(_ASSIGN, self._request(sent))
        if isinstance(response, str):
            return response
        if response.error_code:
            return f"the controller answered error {response.error_code}"
        refused = 0
        for directory in response.directories:
            for topic in directory.topics:
                for answer in topic.partitions:
                    if answer.error_code:
                        refused = answer.error_code
                    elif topic.topic_id is not None:
                        self._settle((topic.topic_id, answer.partition_index), sent)
        return f"the controller answered error {refused} for a partition" if refused else ""

    def _settle(self, key: Key, sent: dict[Key, UUID]) -> None:
        """Drop an accepted assignment, unless the replica has moved on meanwhile."""
        if self._unsent.get(key) == sent.get(key):
            self._unsent.pop(key, None)

    def _request(self, sent: dict[Key, UUID]) -> AssignReplicasToDirsRequest:
        by_directory: dict[UUID, dict[UUID, list[RequestPartitionData]]] = {}
        for (topic_id, partition), directory_id in sent.items():
            by_directory.setdefault(directory_id, {}).setdefault(topic_id, []).append(RequestPartitionData(partition))
        return AssignReplicasToDirsRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            directories=[
                RequestDirectoryData(
                    id=directory_id,
                    topics=[RequestTopicData(topic_id=topic_id, partitions=asked) for topic_id, asked in by_topic.items()],
                )
                for directory_id, by_topic in by_directory.items()
            ],
        )
