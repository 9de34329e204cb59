"""Faults of brokers, coordinators and the controller that histories of clusters have to find: each breaks one rule.

``python -m tests.campaigns.cluster_simulation --mutations`` plants one after the other, and searches for a history that finds it.
"""

from __future__ import annotations

from typing import Any

from odradek.broker.api import txn_offset_commit
from odradek.broker.cluster.peers import TransactionPeers
from odradek.broker.coordination.coordinator_logs import PartitionLog
from odradek.broker.coordination.transaction_coordinator import TransactionCoordinator
from odradek.broker.replica.delayed_fetch import FetchRead
from odradek.broker.replica.followed_partition import FollowedPartition
from odradek.broker.replica.follower_fetch import FollowerFetchRead
from odradek.broker.replica.in_sync_replicas import InSyncReplicas, Isr
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.replicated_roles import BrokersView, ReplicatedRoles
from odradek.broker.replica.roles import Follower
from odradek.controller.cluster import altered_partitions, partition_changes
from odradek.controller.cluster.cluster_controller import ClusterController
from odradek.controller.cluster.partition_changes import PartitionChange
from odradek.coordinator.group.offsets import CommittedOffsets
from odradek.coordinator.runtime import loader
from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.coordinator.transaction.markers import Markers
from odradek.protocol.record_batch import iter_batches
from odradek.storage.log.producer_state import ProducerStates
from odradek.timing.reply import Reply
from tests.campaigns.cluster_simulation import histories
from tests.campaigns.cluster_simulation.consumers import READ
from tests.campaigns.cluster_simulation.ending import ACKNOWLEDGED, ATOMIC, ONCE, REST, SAME
from tests.campaigns.cluster_simulation.producers import IN_ORDER
from tests.campaigns.cluster_simulation.races import AT_ONCE
from tests.campaigns.cluster_simulation.transactions import NOT_BEGUN, UNREFUSED
from tests.campaigns.cluster_simulation.witness import AGREE, COMMITTED, IN_SYNC, KEPT, WATERMARK
from tests.campaigns.cluster_simulation.witness import ONCE as IDENTITIES
from tests.campaigns.planted import Change, Faults, around

FAULTS = Faults(histories.run, most=60)
LOST = (IN_SYNC, ACKNOWLEDGED, AGREE, KEPT, ONCE, COMMITTED, ATOMIC, WATERMARK, READ, SAME, IN_ORDER)


def _answered(value: Any) -> Reply[Any]:
    reply: Reply[Any] = Reply()
    reply.complete(value)
    return reply


# ---------------------------------------------------------------------------------------------------------------- replication


def _cut_to_the_high_watermark(init: Any, followed: FollowedPartition, partition: Partition) -> None:
    init(followed, partition)
    if partition.log is not None:
        partition.truncate_to(partition.high_watermark, 0)


_TELLS_NO_EPOCH = around(
    FollowedPartition, "request", lambda ask, followed, max_bytes: ask(followed, max_bytes)._replace(last_fetched_epoch=-1)
)


@FAULTS.around(InSyncReplicas, "fetched", *LOST, first=5)
def grow_the_isr_by_whoever_fetches(fetched: Any, isr: InSyncReplicas, node_id: int, *arguments: Any, **named: Any) -> None:
    fetched(isr, node_id, *arguments, **named)
    follower = isr.follower(node_id)
    outside = isr.isr.proposed is None and node_id not in isr.isr.committed
    if outside and follower is not None and isr._is_eligible(node_id, follower):
        isr._propose(isr.isr.committed | {node_id})


@FAULTS.around(InSyncReplicas, "_propose", *LOST, first=4, is_rare=True)
def reckon_with_the_proposed_isr(propose: Any, replicas: InSyncReplicas, isr: frozenset[int]) -> None:
    propose(replicas, isr)
    replicas.isr = Isr(isr, isr)


@FAULTS.around(ReplicatedRoles, "take", *LOST, REST, first=4, is_rare=True)
def lead_on_when_another_is_elected(take: Any, roles: ReplicatedRoles, partition: Partition, record: Any) -> None:
    if partition.leader is None or partition.leader.followers is None or record.leader == roles.node_id:
        take(roles, partition, record)


@FAULTS.around(FetchRead, "_read_partition", *LOST, first=3)
def show_what_is_not_replicated(read: Any, fetch: FetchRead, partition: Partition, *arguments: Any) -> Any:
    held, partition.high_watermark = partition.high_watermark, partition.require_log().log_end_offset
    try:
        return read(fetch, partition, *arguments)
    finally:
        partition.high_watermark = held


@FAULTS.around(Partition, "append_as_follower", *LOST, REST, first=1, is_rare=True)
def follow_without_the_producers_state(append: Any, partition: Partition, *arguments: Any) -> Any:
    found = append(partition, *arguments)
    if partition.log is not None and not partition.topic.startswith("__"):
        partition.log._producers.load().by_id.clear()
    return found


FAULTS.add(
    "truncate_by_the_high_watermark",
    around(FollowedPartition, "__init__", _cut_to_the_high_watermark),
    _TELLS_NO_EPOCH,
    finds=LOST,
    first=4,
    is_rare=True,
)
FAULTS.add("truncate_nothing", _TELLS_NO_EPOCH, finds=(*LOST, REST), first=4)
FAULTS.put("name_no_diverging_epoch", FollowerFetchRead, "_diverging", lambda *_: None, *LOST, REST, first=4, is_rare=True)
FAULTS.put("move_the_high_watermark_by_the_leaders_end", InSyncReplicas, "high_watermark", lambda _, own, *__: own, *LOST)
FAULTS.put("acknowledge_what_is_appended", Partition, "is_acknowledged", lambda *_: True, *LOST, first=4)
FAULTS.put("check_no_leader_epoch", Partition, "check_leader_epoch", lambda *_: None, *LOST, first=91, is_rare=True)
FAULTS.put(
    "follow_with_the_leaders_high_watermark",
    Follower,
    "high_watermark",
    lambda _, log, __: log.log_end_offset,
    *LOST,
    first=4,
    is_rare=True,
)
FAULTS.put("tell_the_end_before_it_is_known", Partition, "is_unsettled", False, *LOST, first=11, is_rare=True)
# KIP-903: an ISR of which a member has been started anew, and has lost something, is accepted.
FAULTS.add(
    "ignore_the_epochs_of_brokers_in_the_isr",
    around(InSyncReplicas, "fetched", lambda fetched, isr, node_id, _, *of, **named: fetched(isr, node_id, -1, *of, **named)),
    Change(altered_partitions, "_are_eligible", lambda *_: True),
    Change(InSyncReplicas, "_is_eligible", lambda *_: True),
    Change(BrokersView, "broker_epoch", lambda view, node_id: view._own_epoch() if node_id == view.node_id else -1),
    finds=LOST,
    first=1440,
    is_rare=True,
)

# ----------------------------------------------------------------------------------------------------------------- controller


@FAULTS.around(PartitionChange, "_may_lead", *LOST, REST, first=3, is_rare=True)
def elect_out_of_the_isr(_: Any, change: PartitionChange, replica: int) -> bool:
    acceptable = [each for each in change.replicas if each not in change.isr and change._is_acceptable(each)]
    return change._is_acceptable(replica) and (replica not in change.isr or not acceptable)


_given: dict[str, Any] = {}


@FAULTS.around(ClusterController, "allocate_producer_ids", *LOST, IDENTITIES, first=1)
def give_out_a_block_of_producer_ids_twice(allocate: Any, controller: ClusterController, request: Any) -> Any:
    reply = allocate(controller, request)
    reply.when_done(lambda response: _given.setdefault("block", response) and None)
    return _answered(_given["block"]) if "block" in _given else reply


@FAULTS.around(altered_partitions, "_epoch_error", *LOST, first=215, is_rare=True)
def take_an_isr_of_an_older_partition_epoch(check: Any, partition: Any, leader_id: int, asked: Any) -> Any:
    now = partition.partition_epoch
    return check(partition, leader_id, asked._replace(partition_epoch=min(asked.partition_epoch, now))) and check(
        partition, leader_id, asked._replace(partition_epoch=now)
    )


FAULTS.put(
    "keep_the_isr_of_a_broker_that_was_killed", partition_changes, "shut_down", lambda *_, **__: [], *LOST, first=18, is_rare=True
)

# ---------------------------------------------------------------------------------------------------------------- coordinators


class _UpToTheHighWatermark:
    """A coordinator's log as one that reads no further would see it: a new leader's high watermark is behind at first."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.log_end_offset = log.high_watermark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def read(self, offset: int, max_bytes: int) -> bytes:
        data: bytes = self._log.read(offset, max_bytes)
        headers = [header for _, header in iter_batches(data)]
        return data[: sum(header.size_bytes for header in headers if header.next_offset <= self.log_end_offset)]


@FAULTS.around(loader._Load, "_replay", *LOST, IDENTITIES, REST, first=2)
def load_a_coordinator_up_to_the_high_watermark(replay: Any, load: Any, environment: Any) -> Any:
    log, load.hosted.log = load.hosted.log, _UpToTheHighWatermark(load.hosted.log)
    try:
        yield from replay(load, environment)
    finally:
        load.hosted.log = log


@FAULTS.around(Partition, "append_internal", *LOST, is_rare=True)
def answer_commits_that_are_not_replicated(append: Any, partition: Partition, *arguments: Any, **named: Any) -> Any:
    end = append(partition, *arguments, **named)
    partition._advance(end)
    return end


@FAULTS.around(ProducerStates, "record_marker", UNREFUSED, first=27)
def drop_the_next_transactions_verification(record: Any, states: ProducerStates, producer_id: int, *arguments: Any) -> Any:
    found = record(states, producer_id, *arguments)
    states._verifications.pop(producer_id, None)
    return found


def _ask_once(init: Any, peers: TransactionPeers, *arguments: Any, **named: Any) -> None:
    init(peers, *arguments, **named)
    peers._max_retry_ms = 0


@FAULTS.around(CoordinatorRuntime, "read", NOT_BEGUN, first=27)
def begin_transactions_for_groups_elsewhere(read: Any, runtime: Any, target: Any, look: Any) -> Any:
    return None if look.__module__ == txn_offset_commit.__name__ else read(runtime, target, look)


FAULTS.put("write_no_markers_to_other_brokers", TransactionPeers, "write_marker", lambda *_: _answered(None), *LOST, REST)
FAULTS.put("resume_no_markers", Markers, "resume", lambda _: None, *LOST, REST, first=35, is_rare=True)
FAULTS.put(
    "commit_offsets_while_the_transaction_is_open",
    CommittedOffsets,
    "replay_marker",
    lambda *_, **__: None,
    *(*LOST, REST),
    is_rare=True,
)
# Neither does the leader ask again, nor does the coordinator wait.
FAULTS.add(
    "answer_while_a_transaction_is_being_completed",
    around(TransactionPeers, "__init__", _ask_once),
    Change(TransactionCoordinator, "write", lambda coordinator, *arguments: coordinator.runtime.write(*arguments)),
    finds=(UNREFUSED,),
    first=27,
)
FAULTS.wrap(
    "append_transactions_that_too_few_replicas_get",
    PartitionLog,
    "__init__",
    lambda init, log, partition, compression, _=False: init(log, partition, compression),
    AT_ONCE,
    first=22,
)
