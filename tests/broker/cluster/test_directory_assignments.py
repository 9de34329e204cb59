"""The controller is told where each replica is, until it has taken it."""

from uuid import UUID

import pytest

from odradek.broker.replica.controller_requests import DirectoryAssignments
from odradek.controller.quorum.controller_channel import ControllerUnavailable
from odradek.protocol.message_types.assign_replicas_to_dirs import (
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.client.net import settle

pytestmark = pytest.mark.asyncio
TOPIC = UUID(int=1)
HERE, THERE = UUID(int=100), UUID(int=200)


class Controller:
    """Part of ControllerChannel: takes each assignment, but for what ``instead`` and ``refused`` say."""

    def __init__(self):
        self.asked = []
        self.instead = []
        self.refused = set()

    async def request(self, _api, request, _timeout_ms):
        told = {
            partition.partition_index: (directory.id, topic.topic_id)
            for directory in request.directories
            for topic in directory.topics
            for partition in topic.partitions
        }
        self.asked.append((request.broker_id, request.broker_epoch, told))
        if self.instead:
            instead = self.instead.pop(0)
            if isinstance(instead, Exception):
                raise instead
            return instead
        return AssignReplicasToDirsResponse(
            directories=[
                DirectoryData(
                    directory.id,
                    [
                        TopicData(
                            topic.topic_id,
                            [
                                PartitionData(each.partition_index, 3 if each.partition_index in self.refused else 0)
                                for each in topic.partitions
                            ],
                        )
                        for topic in directory.topics
                    ],
                )
                for directory in request.directories
            ]
        )


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def controller():
    return Controller()


@pytest.fixture
def assignments(clock, controller):
    timer = Timer(clock)
    made = DirectoryAssignments(controller, timer, 7, lambda: 70)
    made.timer = timer
    return made


async def wait(assignments, clock, duration_ms):
    clock.advance(duration_ms)
    assignments.timer.advance()
    await settle()


async def test_places_go_together_and_once(assignments, controller):
    assignments.assign([(TOPIC, 0, HERE), (TOPIC, 1, THERE)])
    await settle()
    assert controller.asked == [(7, 70, {0: (HERE, TOPIC), 1: (THERE, TOPIC)})]


@pytest.mark.parametrize("failure", [ControllerUnavailable("gone"), AssignReplicasToDirsResponse(error_code=77)])
async def test_what_was_not_taken_is_told_again(assignments, controller, clock, failure):
    controller.instead = [failure]
    assignments.assign([(TOPIC, 0, HERE)])
    await settle()
    await wait(assignments, clock, 500)
    assert [told for _, _, told in controller.asked] == [{0: (HERE, TOPIC)}] * 2
    await wait(assignments, clock, 500)
    assert len(controller.asked) == 2


async def test_of_several_only_those_that_were_refused_are_told_again(assignments, controller, clock):
    controller.refused = {1}
    assignments.assign([(TOPIC, 0, HERE), (TOPIC, 1, HERE)])
    await settle()
    controller.refused = set()
    await wait(assignments, clock, 500)
    assert [set(told) for _, _, told in controller.asked] == [{0, 1}, {1}]


async def test_a_replica_that_has_moved_on_is_told_of_where_it_is_now(assignments, controller, clock):
    controller.instead = [ControllerUnavailable("gone")]
    assignments.assign([(TOPIC, 0, HERE)])
    await settle()
    assignments.assign([(TOPIC, 0, THERE)])
    await wait(assignments, clock, 500)
    assert controller.asked[-1][2] == {0: (THERE, TOPIC)}


async def test_nothing_is_told_any_more_once_it_is_closed(assignments, controller, clock):
    controller.instead = [ControllerUnavailable("gone")]
    assignments.assign([(TOPIC, 0, HERE)])
    await settle()
    assignments.close()
    await wait(assignments, clock, 5000)
    assert len(controller.asked) == 1
