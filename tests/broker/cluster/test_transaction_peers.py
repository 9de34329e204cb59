"""Markers reach the leaders of their partitions, questions the coordinator; what is not answered is told as such."""

from random import Random

import pytest

from odradek.broker.cluster.broker_clients import PeerNetwork
from odradek.broker.cluster.peers import TransactionPeers
from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from odradek.protocol.message_types.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.broker.cluster.images import image_of
from tests.client.net import Net, settle

pytestmark = pytest.mark.asyncio

HERE, THERE, DEAD, NOBODY = 1, 2, 3, -1
LEADERS = {"a": [HERE, THERE, THERE, DEAD, NOBODY], "__transaction_state": [THERE]}
REQUEST_TIMEOUT_MS = 1_000
RETRY_BACKOFF_MS, MAX_RETRY_MS = 20, 100
MARKER = EndTxnMarker(producer_id=5, producer_epoch=1, coordinator_epoch=3, is_commit=True, transaction_version=2)


class Other:
    """The broker THERE: answers NONE, but for what ``errors`` says by partition."""

    def __init__(self):
        self.errors = {}
        self.refusal = ErrorCode.NONE
        self.asked = []

    def answer(self, _api_key, _version, request):
        self.asked.append(request)
        if hasattr(request, "markers"):
            results = [WritableTxnMarkerResult(each.producer_id, list(map(self.marked, each.topics))) for each in request.markers]
            return WriteTxnMarkersResponse(markers=results)
        asked = request.transactions
        results = [AddPartitionsToTxnResult(each.transactional_id, list(map(self.verified, each.topics))) for each in asked]
        return AddPartitionsToTxnResponse(error_code=self.refusal, results_by_transaction=[] if self.refusal else results)

    def marked(self, topic):
        told = [WritableTxnMarkerPartitionResult(each, self.errors.get(each, 0)) for each in topic.partition_indexes]
        return WritableTxnMarkerTopicResult(topic.name, told)

    def verified(self, topic):
        told = [AddPartitionsToTxnPartitionResult(each, self.errors.get(each, 0)) for each in topic.partitions]
        return AddPartitionsToTxnTopicResult(topic.name, told)


class Setup:
    def __init__(self, leaders=LEADERS):
        self.clock = VirtualClock()
        self.other = Other()
        self.net = Net(self.other.answer)
        self.soon = []
        network = PeerNetwork(
            connect=lambda _: self.net.connect,
            address_of={THERE: ("there", 9)}.get,
            call_soon=self.soon.append,
            timer=Timer(self.clock),
            random=Random(1),
            node_id=HERE,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
        )
        self.peers = TransactionPeers(image_of(leaders), network, retry_backoff_ms=RETRY_BACKOFF_MS, max_retry_ms=MAX_RETRY_MS)

    async def run(self):
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()
        await settle()


@pytest.fixture
def setup():
    return Setup()


async def test_what_is_led_here_or_unknown_is_this_brokers_own(setup):
    assert [setup.peers.is_here("a", index) for index in range(6)] == [True, False, False, False, False, True]
    assert setup.peers.is_here("gone", 0)
    assert not setup.peers.coordinates("any")
    assert Setup({"a": [HERE]}).peers.coordinates("any")


async def test_markers_of_one_turn_go_together_and_each_has_its_answer(setup):
    setup.other.errors = {2: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    replies = [setup.peers.write_marker("a", index, MARKER) for index in (1, 2)]
    await setup.run()
    [request] = setup.other.asked
    [marker] = request.markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, marker.transaction_result) == (5, 1, 3, True)
    assert [(topic.name, list(topic.partition_indexes)) for topic in marker.topics] == [("a", [1, 2])]
    assert [reply.response and reply.response.code for reply in replies] == [None, ErrorCode.NOT_LEADER_OR_FOLLOWER]


async def test_two_markers_of_one_producer_go_in_two_requests(setup):
    replies = [setup.peers.write_marker("a", 1, MARKER._replace(producer_epoch=epoch)) for epoch in (1, 2)]
    await setup.run()
    assert [[marker.producer_epoch for marker in request.markers] for request in setup.other.asked] == [[1], [2]]
    assert [(reply.done, reply.response) for reply in replies] == [(True, None)] * 2


async def test_a_leader_that_does_not_know_the_topic_yet_gets_the_marker_again(setup):
    setup.other.errors = {1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    reply = setup.peers.write_marker("a", 1, MARKER)
    await setup.run()
    assert reply.response.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("index", [3, 4])
async def test_a_marker_for_a_partition_without_a_leader_that_lives_is_refused_at_once(setup, index):
    with pytest.raises(KafkaError) as refused:
        setup.peers.write_marker("a", index, MARKER)
    assert refused.value.code == ErrorCode.LEADER_NOT_AVAILABLE


async def test_a_broker_that_is_lost_has_written_nothing_that_is_known_of(setup):
    setup.net.refuses = True
    reply = setup.peers.write_marker("a", 1, MARKER)
    await setup.run()
    assert reply.response.code == ErrorCode.NETWORK_EXCEPTION


async def test_a_broker_that_is_silent_is_waited_for_no_longer_than_the_request_timeout(setup):
    setup.net.hangs = True
    reply = setup.peers.write_marker("a", 1, MARKER)
    await setup.run()
    setup.clock.advance(REQUEST_TIMEOUT_MS - 1)
    assert not reply.done
    setup.clock.advance(1)
    await settle()
    assert reply.response.code == ErrorCode.NETWORK_EXCEPTION


@pytest.mark.parametrize("adds", [False, True])
async def test_the_coordinator_says_of_each_partition_what_it_thinks(setup, adds):
    setup.other.errors = {1: ErrorCode.TRANSACTION_ABORTABLE}
    asked = frozenset({("a", 0), ("a", 1), ("b", 0)})
    reply = setup.peers.verify("id", 5, 1, asked, adds=adds)
    await setup.run()
    assert reply.response == {("a", 0): ErrorCode.NONE, ("a", 1): ErrorCode.TRANSACTION_ABORTABLE, ("b", 0): ErrorCode.NONE}
    [transaction] = setup.other.asked[0].transactions
    assert (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch) == ("id", 5, 1)
    assert transaction.verify_only is not adds


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
async def test_a_coordinator_that_refuses_the_question_refuses_it_for_all_partitions(setup, refusal, told):
    setup.other.refusal = refusal
    reply = setup.peers.verify("id", 5, 1, frozenset({("a", 0), ("b", 0)}), adds=True)
    await setup.run()
    assert reply.response == {("a", 0): told, ("b", 0): told}


async def test_without_a_coordinator_that_answers_the_producer_is_to_try_again(setup):
    setup.net.refuses = True
    asked = frozenset({("a", 0)})
    reply = setup.peers.verify("id", 5, 1, asked, adds=False)
    await setup.run()
    assert reply.response == {("a", 0): ErrorCode.NETWORK_EXCEPTION}
    nobody = Setup({"__transaction_state": [NOBODY]}).peers.verify("id", 5, 1, asked, adds=False)
    assert nobody.response == {("a", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE}


async def test_a_question_that_waits_is_not_answered_by_a_broker_that_ends(setup):
    setup.net.hangs = True
    reply = setup.peers.verify("id", 5, 1, frozenset({("a", 0)}), adds=False)
    await setup.run()
    setup.peers.close()
    await settle()
    assert not reply.done


async def test_a_coordinator_that_completes_the_last_transaction_is_asked_again_until_it_has(setup):
    setup.other.errors = {0: ErrorCode.CONCURRENT_TRANSACTIONS}
    reply = setup.peers.verify("id", 5, 1, frozenset({("a", 0)}), adds=True)
    await setup.run()
    assert (len(setup.other.asked), reply.done) == (1, False)
    setup.clock.advance(RETRY_BACKOFF_MS - 1)
    await settle()
    assert len(setup.other.asked) == 1
    setup.other.errors = {}
    setup.clock.advance(1)
    await settle()
    assert (len(setup.other.asked), reply.response) == (2, {("a", 0): ErrorCode.NONE})


async def test_a_transaction_that_is_never_completed_is_told_in_time(setup):
    setup.other.errors = {0: ErrorCode.CONCURRENT_TRANSACTIONS}
    reply = setup.peers.verify("id", 5, 1, frozenset({("a", 0)}), adds=True)
    for _ in range(MAX_RETRY_MS // RETRY_BACKOFF_MS):
        await setup.run()
        assert not reply.done
        setup.clock.advance(RETRY_BACKOFF_MS)
    await settle()
    assert reply.response == {("a", 0): ErrorCode.CONCURRENT_TRANSACTIONS}


async def test_a_verification_alone_is_asked_once(setup):
    setup.other.errors = {0: ErrorCode.CONCURRENT_TRANSACTIONS}
    reply = setup.peers.verify("id", 5, 1, frozenset({("a", 0)}), adds=False)
    await setup.run()
    assert reply.response == {("a", 0): ErrorCode.CONCURRENT_TRANSACTIONS}


async def test_a_question_waits_neither_for_markers_nor_for_another_question(setup):
    setup.peers.write_marker("a", 1, MARKER)
    await setup.run()
    [markers] = setup.net.links
    markers.hold()
    slow = setup.peers.verify("slow", 5, 1, frozenset({("a", 0)}), adds=True)
    setup.net.hangs = True
    await setup.run()
    setup.net.hangs = False
    quick = setup.peers.verify("quick", 6, 1, frozenset({("a", 0)}), adds=True)
    await setup.run()
    assert (slow.done, quick.response) == (False, {("a", 0): ErrorCode.NONE})
