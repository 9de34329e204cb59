"""The partitions of each instance of an application, for its interactive queries.

An instance with ``application.server`` has an endpoint. Each member learns of the endpoints of all members when the group's
endpoint epoch has changed.

Source: ``EndpointToPartitionsManager`` and ``StreamsGroup.buildEndpointToPartitions`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.message_types.streams_group_heartbeat import Endpoint, EndpointToPartitions, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.coordinator.group.assignor.streams_interface import Tasks
    from odradek.coordinator.group.streams.configured_topology import ConfiguredSubtopology
    from odradek.coordinator.group.streams.group import StreamsGroup
    from odradek.coordinator.group.streams.groups import StreamsGroups
    from odradek.coordinator.group.streams.member import StreamsGroupMember


def endpoints(
    groups: StreamsGroups,
    group: StreamsGroup,
    configured: Mapping[str, ConfiguredSubtopology],
    member: StreamsGroupMember,
    replaced_id: str | None,
) -> list[EndpointToPartitions]:
    """Return the entry of each member with an endpoint, that of ``member`` last. The member ``replaced_id`` is left out."""
    others = [each for member_id, each in group.members.items() if member_id not in (member.member_id, replaced_id)]
    return [_entry(groups, configured, each) for each in [*others, member] if each.user_endpoint is not None]


def _entry(
    groups: StreamsGroups, configured: Mapping[str, ConfiguredSubtopology], member: StreamsGroupMember
) -> EndpointToPartitions:
    host, port = member.user_endpoint or ("", 0)
    active, standby, warmup = member.assigned.without_epochs()
    replicas = {
        subtopology: standby.get(subtopology, frozenset()) | warmup.get(subtopology, frozenset())
        for subtopology in {**standby, **warmup}
    }
    return EndpointToPartitions(
        user_endpoint=Endpoint(host=host, port=port),
        active_partitions=_partitions(groups, configured, active),
        standby_partitions=_partitions(groups, configured, replicas),
    )


def _partitions(groups: StreamsGroups, configured: Mapping[str, ConfiguredSubtopology], tasks: Tasks) -> list[TopicPartition]:
    """Return the source partitions of tasks, those of repartition topics included. A task may have none in a smaller topic."""
    found = []
    for subtopology_id, indexes in tasks.items():
        subtopology = configured.get(subtopology_id)
        if subtopology is None:
            continue
        for name in (*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)):
            count = groups.partition_count(name) or 0
            own = sorted(index for index in indexes if index < count)
            if own:
                found.append(TopicPartition(topic=name, partitions=own))
    return found
