"""The topology and the tasks of a streams group, as ``odradek groups describe`` shows them."""

from typing import Any

from odradek.client.streams_groups import tasks_of
from odradek.protocol.message_types.streams_group_describe import DescribedGroup, Subtopology

SUBTOPOLOGY = ("subtopology", "source_topics", "repartition_source_topics", "repartition_sink_topics", "state_changelog_topics")
TASK = ("task", "active", "standby", "warmup", "moves_to", "process")


def tasks_and_topology(group: DescribedGroup) -> dict[str, Any]:
    """Return the parts of the group's document that only streams groups have."""
    processes = {member.member_id: member.process_id for member in group.members}
    topology = group.topology
    return {
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "topology_epoch": None if topology is None else topology.epoch,
        "subtopologies": [] if topology is None else [_subtopology(each) for each in topology.subtopologies or ()],
        "tasks": [
            {
                "task": str(task),
                "subtopology": task.subtopology_id,
                "partition": task.partition,
                "active": task.active,
                "standby": list(task.standby),
                "warmup": list(task.warmup),
                "moves_to": task.moves_to,
                "process": None if task.active is None else processes.get(task.active),
            }
            for task in tasks_of(group)
        ],
    }


def _subtopology(each: Subtopology) -> dict[str, Any]:
    return {
        "subtopology": each.subtopology_id,
        "source_topics": sorted(each.source_topics),
        "repartition_source_topics": sorted(topic.name for topic in each.repartition_source_topics),
        "repartition_sink_topics": sorted(each.repartition_sink_topics),
        "state_changelog_topics": sorted(topic.name for topic in each.state_changelog_topics),
    }
