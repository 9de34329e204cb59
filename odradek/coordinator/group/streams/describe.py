"""StreamsGroupDescribe: a group, its topology and its members as the log has them at its committed offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.group.streams.group import NO_OFFSETS, StreamsGroup
from odradek.coordinator.group.streams.member import NO_TASKS
from odradek.protocol.message_types import streams_group_describe as messages

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from odradek.coordinator.group.assignor.streams_interface import MemberTasks, Tasks
    from odradek.coordinator.group.streams.configured_topology import ConfiguredInternalTopic, ConfiguredTopology
    from odradek.coordinator.group.streams.group import TaskOffsets
    from odradek.coordinator.group.streams.groups import StreamsGroups
    from odradek.coordinator.group.streams.member import StreamsGroupMember
    from odradek.coordinator.group.streams.topology import StreamsTopology
    from odradek.protocol.coordinator_records.streams_groups import TopicInfo


def describe_streams_group(
    groups: StreamsGroups, group_id: str, at_offset: int
) -> Generator[None, None, messages.DescribedGroup]:
    """Build the DescribedGroup of StreamsGroupDescribe. Raises KafkaError: GROUP_ID_NOT_FOUND.

    A generator that pauses after each member. Everything that may change is read before the first pause.
    """
    group = groups.registry.stored.get_at(group_id, at_offset)
    if not isinstance(group, StreamsGroup):
        raise groups.not_found(group_id)
    standing = [member for _, member in group.members.items_at(at_offset)]
    targets = dict(group.targets.items_at(at_offset))
    offsets = dict(group.task_offsets)
    topology, configured = group.topology.get_at(at_offset), group.configured
    described = messages.DescribedGroup(
        group_id=group_id,
        group_state=group.state_at(at_offset).value,
        group_epoch=group.epoch.get_at(at_offset),
        assignment_epoch=group.target_metadata.get_at(at_offset)[0],
        topology=None if topology is None else _topology(topology, configured),
        assignor_name=groups.assignor(group_id)[0],
    )
    members = []
    for member in standing:
        target = targets.get(member.member_id, NO_TASKS)
        members.append(_member(member, target, offsets.get(member.member_id, NO_OFFSETS)))
        yield None
    return described._replace(members=members)


def _topology(topology: StreamsTopology, configured: ConfiguredTopology | None) -> messages.Topology:
    """Return the topology with the decided numbers of partitions, or as the member gave it while it is not ready."""
    if configured is not None and configured.is_ready and configured.configured is not None:
        ready = configured.configured
        subtopologies = [
            messages.Subtopology(
                subtopology_id=subtopology_id,
                source_topics=ready[subtopology_id].source_topics,
                repartition_sink_topics=ready[subtopology_id].repartition_sink_topics,
                repartition_source_topics=[_decided(topic) for topic in ready[subtopology_id].repartition_source_topics],
                state_changelog_topics=[_decided(topic) for topic in ready[subtopology_id].state_changelog_topics],
            )
            for subtopology_id in sorted(ready)
        ]
        return messages.Topology(epoch=configured.epoch, subtopologies=subtopologies)
    return messages.Topology(
        epoch=topology.epoch,
        subtopologies=[
            messages.Subtopology(
                subtopology_id=subtopology_id,
                source_topics=sorted(each.source_topics),
                repartition_sink_topics=sorted(each.repartition_sink_topics),
                repartition_source_topics=_given(each.repartition_source_topics),
                state_changelog_topics=_given(each.state_changelog_topics),
            )
            for subtopology_id, each in sorted(topology.subtopologies.items())
        ],
    )


def _decided(topic: ConfiguredInternalTopic) -> messages.TopicInfo:
    return messages.TopicInfo(
        name=topic.name,
        partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        topic_configs=[messages.KeyValue(key=key, value=value) for key, value in topic.configs],
    )


def _given(topics: Iterable[TopicInfo]) -> list[messages.TopicInfo]:
    return [
        messages.TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[messages.KeyValue(key=config.key, value=config.value) for config in topic.topic_configs],
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _member(member: StreamsGroupMember, target: MemberTasks, offsets: TaskOffsets) -> messages.Member:
    endpoint = member.user_endpoint
    return messages.Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id or "",
        user_endpoint=None if endpoint is None else messages.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[messages.KeyValue(key=key, value=value) for key, value in member.client_tags],
        task_offsets=_offsets(offsets.offsets),
        task_end_offsets=_offsets(offsets.end_offsets),
        assignment=_assignment(member.assigned.without_epochs()),
        target_assignment=_assignment(target),
    )


def _assignment(tasks: MemberTasks) -> messages.Assignment:
    active, standby, warmup = map(_task_ids, tasks)
    return messages.Assignment(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)


def _task_ids(tasks: Tasks) -> list[messages.TaskIds]:
    return [
        messages.TaskIds(subtopology_id=subtopology_id, partitions=sorted(partitions))
        for subtopology_id, partitions in sorted(tasks.items())
    ]


def _offsets(offsets: Mapping[str, Mapping[int, int]]) -> list[messages.TaskOffset]:
    return [
        messages.TaskOffset(subtopology_id=subtopology_id, partition=partition, offset=offset)
        for subtopology_id, by_partition in sorted(offsets.items())
        for partition, offset in sorted(by_partition.items())
    ]
