"""Proposals reach the controller together, one request at a time, and each is answered once."""

import asyncio
from uuid import UUID

import pytest

from odradek.broker.replica.controller_requests import AlterPartitions
from odradek.broker.replica.in_sync_replicas import CommittedIsr, Proposal
from odradek.controller.quorum.controller_channel import ControllerUnavailable
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.alter_partition import AlterPartitionResponse, PartitionData, TopicData
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.client.net import settle

TOPIC, OTHER = UUID(int=1), UUID(int=2)


def proposal(partition=0, partition_epoch=5, isr=((7, 70), (8, 80)), topic_id=TOPIC):
    return Proposal(topic_id, partition, 3, partition_epoch, isr)


class Controller:
    """Part of ControllerChannel: takes each proposal, but for what ``instead`` says."""

    def __init__(self):
        self.asked = []
        self.instead = []
        self.errors = {}
        self.left_out = set()
        self.hold = None

    async def request(self, _api, request, _timeout_ms):
        self.asked.append(request)
        if self.hold is not None:
            await self.hold
        if self.instead:
            instead = self.instead.pop(0)
            if isinstance(instead, Exception):
                raise instead
            return instead
        return AlterPartitionResponse(
            topics=[
                TopicData(
                    topic.topic_id, [self._answer(each) for each in topic.partitions if each.partition_index not in self.left_out]
                )
                for topic in request.topics
            ]
        )

    def _answer(self, asked):
        error = self.errors.get(asked.partition_index, 0)
        isr = [replica.broker_id for replica in asked.new_isr_with_epochs]
        return PartitionData(
            partition_index=asked.partition_index,
            error_code=error,
            leader_id=7,
            leader_epoch=asked.leader_epoch,
            isr=isr,
            partition_epoch=asked.partition_epoch + 1,
        )

    @property
    def named(self):
        """The partitions of each request."""
        return [
            [(topic.topic_id, each.partition_index) for topic in asked.topics for each in topic.partitions]
            for asked in self.asked
        ]


class Setup:
    def __init__(self):
        self.clock = VirtualClock()
        self.controller = Controller()
        self.epoch = 70
        self.changes = AlterPartitions(self.controller, Timer(self.clock), 7, lambda: self.epoch)

    async def wait(self, duration_ms):
        await settle()
        self.clock.advance(duration_ms)
        await settle()


@pytest.fixture
async def setup():
    made = Setup()
    yield made
    made.changes.close()
    await settle()


async def test_a_proposal_is_sent_with_all_epochs_and_answered_with_what_the_controller_has(setup):
    reply = setup.changes.propose(proposal())
    assert not reply.done
    await settle()
    [asked] = setup.controller.asked
    assert (asked.broker_id, asked.broker_epoch) == (7, 70)
    [partition] = asked.topics[0].partitions
    assert (partition.leader_epoch, partition.partition_epoch) == (3, 5)
    assert [tuple(replica) for replica in partition.new_isr_with_epochs] == [(7, 70), (8, 80)]
    assert reply.response == CommittedIsr(3, 6, frozenset((7, 8)))


async def test_what_is_proposed_while_a_request_is_open_goes_with_the_next_one(setup):
    setup.controller.hold = asyncio.get_running_loop().create_future()
    setup.changes.propose(proposal())
    await settle()
    others = [setup.changes.propose(proposal(1)), setup.changes.propose(proposal(1, topic_id=OTHER))]
    setup.controller.hold.set_result(None)
    setup.controller.hold = None
    await settle()
    assert setup.controller.named == [[(TOPIC, 0)], [(TOPIC, 1), (OTHER, 1)]]
    assert all(reply.done for reply in others)


async def test_a_newer_proposal_takes_the_place_of_one_that_was_not_sent(setup):
    old = setup.changes.propose(proposal())
    new = setup.changes.propose(proposal(partition_epoch=6))
    assert old.response.code == ErrorCode.OPERATION_NOT_ATTEMPTED
    await settle()
    assert new.response.partition_epoch == 7
    assert len(setup.controller.asked) == 1


@pytest.mark.parametrize(
    "instead", [ControllerUnavailable("nobody"), AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)]
)
async def test_a_request_that_was_not_taken_is_sent_again_with_the_epoch_of_then(setup, instead):
    setup.controller.instead = [instead]
    reply = setup.changes.propose(proposal())
    await settle()
    setup.epoch = 71
    assert not reply.done
    await setup.wait(50)
    assert reply.response == CommittedIsr(3, 6, frozenset((7, 8)))
    assert [asked.broker_epoch for asked in setup.controller.asked] == [70, 71]


async def test_while_a_request_is_sent_again_a_newer_proposal_is_not_replaced_by_it(setup):
    setup.controller.hold = asyncio.get_running_loop().create_future()
    setup.controller.instead = [ControllerUnavailable("nobody")]
    old = setup.changes.propose(proposal())
    await settle()
    new = setup.changes.propose(proposal(partition_epoch=9))
    setup.controller.hold.set_result(None)
    setup.controller.hold = None
    await setup.wait(50)
    assert new.response.partition_epoch == 10
    assert old.response.code == ErrorCode.INVALID_UPDATE_VERSION
    assert len(setup.controller.asked) == 2


async def test_a_partitions_error_is_its_own(setup):
    setup.controller.errors = {1: ErrorCode.INELIGIBLE_REPLICA, 2: 9999}
    replies = [setup.changes.propose(proposal(partition)) for partition in range(3)]
    await settle()
    assert isinstance(replies[0].response, CommittedIsr)
    assert [reply.response.code for reply in replies[1:]] == [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.UNKNOWN_SERVER_ERROR]


async def test_a_partition_that_the_answer_leaves_out_is_asked_for_again(setup):
    setup.controller.left_out = {1}
    first, second = setup.changes.propose(proposal(0)), setup.changes.propose(proposal(1))
    await settle()
    assert first.done
    assert not second.done
    setup.controller.left_out = set()
    await setup.wait(50)
    assert second.done
    assert setup.controller.named[1] == [(TOPIC, 1)]
