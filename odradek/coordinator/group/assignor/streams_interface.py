"""The input and output of the task assignor of streams groups (KIP-1071).

A *task* is a subtopology and a partition. Its *active* task processes records, a *standby* task keeps a copy of its state.

The assignor of Kafka 4.4 reads neither racks, client tags, instance ids nor warm-up tasks, and assigns no warm-up tasks. They
are left out here, and so are the configs ``num.warmup.replicas``, ``acceptable.recovery.lag`` and
``rack.aware.assignment.tags``.

Source: ``GroupSpec``, ``MemberAssignmentState``, ``MemberAssignmentMetadata``, ``AssignmentConfigs`` and ``TopologyDescriber``
in ``org.apache.kafka.coordinator.group.api.streams.assignor`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

# Tasks: partitions by subtopology id.
Tasks: TypeAlias = Mapping[str, frozenset[int]]


class MemberTasks(NamedTuple):
    """The tasks of one member."""

    active: Tasks
    standby: Tasks
    warmup: Tasks


# The tasks of all members, by member id.
StreamsGroupAssignment: TypeAlias = Mapping[str, MemberTasks]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMemberSpec:
    """A member of the group.

    Args:
        process_id: the process that it belongs to. A process gets a task only once.
        active_tasks: the active tasks it has now: its current assignment, not its target.
        standby_tasks: the standby tasks it has now.
        task_offsets: by subtopology id and partition, the sum of the offsets of the state on its disk, as it last reported.
    """

    process_id: str
    active_tasks: Tasks
    standby_tasks: Tasks
    task_offsets: Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupSpec:
    """A streams group that needs an assignment. Nothing in it may be changed.

    Args:
        members: by member id.
        num_standby_replicas: the standby tasks wanted for each task of a stateful subtopology.
    """

    members: Mapping[str, StreamsMemberSpec]
    num_standby_replicas: int


class TopologyDescriber(Protocol):
    """The group's configured topology."""

    def subtopologies(self) -> Sequence[str]:
        """Return the ids of the subtopologies."""

    def max_num_input_partitions(self, subtopology_id: str) -> int:
        """Return the number of tasks of a subtopology: the most partitions that one of its input topics has."""

    def is_stateful(self, subtopology_id: str) -> bool:
        """Return whether a subtopology has changelog topics."""
