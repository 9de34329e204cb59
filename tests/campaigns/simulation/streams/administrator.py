"""An administrator who describes streams groups; they are compared with the shard where all that was decided is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.streams.group import StreamsGroup
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.streams_group_describe import StreamsGroupDescribeRequest
from tests.campaigns.simulation.groups.administrator import SHOWN, Administrator
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from tests.campaigns.simulation.groups.plan import GroupPlan


class StreamsAdministrator(Administrator):
    """The administrator of one world."""

    def describe(self, group: GroupPlan) -> None:
        """StreamsGroupDescribe for one group."""
        asked = StreamsGroupDescribeRequest(group_ids=[group.group_id])
        self._world.ask(
            None,
            ApiKey.STREAMS_GROUP_DESCRIBE,
            self._world.rng.choice((0, 1)),
            lambda: asked,
            lambda response: self._check_streams_group(response, group.group_id),
        )

    def _check_streams_group(self, response: Any, group_id: str) -> None:
        hosted = self._world.hosted(group_id)
        if response is None or hosted is None or hosted.committed_offset < hosted.next_offset:
            return
        (described,) = response.groups
        if described.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            return
        group = hosted.shard.groups.find(group_id)
        if isinstance(group, StreamsGroup) != (described.error_code == ErrorCode.NONE):
            raise Violation(SHOWN, f"{group_id} is {group}, and described as {described}")
        if isinstance(group, StreamsGroup):
            shown = (
                described.group_state,
                described.group_epoch,
                described.assignment_epoch,
                {each.member_id: (each.member_epoch, _tasks(each.assignment)) for each in described.members},
            )
            there = (
                group.state,
                group.epoch.get(),
                group.assignment_epoch,
                {
                    member_id: (each.member_epoch, [_sorted(tasks) for tasks in each.assigned])
                    for member_id, each in group.members.items()
                },
            )
            if shown != there:
                raise Violation(SHOWN, f"{group_id} is {there}, and described as {shown}")


def _tasks(assignment: Any) -> list[dict[str, list[int]]]:
    roles = (assignment.active_tasks, assignment.standby_tasks, assignment.warmup_tasks)
    return [{each.subtopology_id: sorted(each.partitions) for each in tasks if each.partitions} for tasks in roles]


def _sorted(tasks: Any) -> dict[str, list[int]]:
    return {subtopology_id: sorted(indexes) for subtopology_id, indexes in tasks.items() if indexes}
