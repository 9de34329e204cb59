"""Faults of the product that the simulation has to find: each spoils one rule, of a broker, its coordinators, or the controller.

``python -m tests.campaigns.cluster_simulation --mutations`` plants one after the other, and searches for a history that finds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.broker.cluster.brokers_view import BrokersView
from odradek.broker.cluster.replicated_roles import ReplicatedRoles
from odradek.broker.cluster.transaction_peers import TransactionPeers
from odradek.broker.controller import altered_partitions, broker_changes
from odradek.broker.controller.cluster_controller import ClusterController
from odradek.broker.controller.partition_change import PartitionChange
from odradek.broker.coordination.coordinator_logs import PartitionLog
from odradek.broker.coordination.transaction_coordinator import TransactionCoordinator
from odradek.broker.handlers import txn_offset_commit
from odradek.broker.replica.delayed_fetch import FetchRead
from odradek.broker.replica.followed_partition import FollowedPartition
from odradek.broker.replica.follower_fetch import FollowerFetchRead
from odradek.broker.replica.in_sync_replicas import InSyncReplicas, Isr
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.roles import Follower
from odradek.coordinator.group.offsets import CommittedOffsets
from odradek.coordinator.runtime import loader
from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.coordinator.transaction.markers import Markers
from odradek.protocol.record_batch import iter_batches
from odradek.storage.producer_state import ProducerStates
from odradek.timing.reply import Reply
from tests.campaigns.cluster_simulation import histories
from tests.campaigns.cluster_simulation.consumers import READ
from tests.campaigns.cluster_simulation.ending import ACKNOWLEDGED, ATOMIC, ONCE, REST, SAME
from tests.campaigns.cluster_simulation.hurried import NOT_BEGUN, UNREFUSED
from tests.campaigns.cluster_simulation.ledger import COMMITTED, WATERMARK
from tests.campaigns.cluster_simulation.ledger import ONCE as IDENTITIES
from tests.campaigns.cluster_simulation.producers import IN_ORDER
from tests.campaigns.cluster_simulation.races import AT_ONCE
from tests.campaigns.cluster_simulation.witness import AGREE, IN_SYNC, KEPT
from tests.campaigns.simulation import planted
from tests.campaigns.simulation.planted import Mutation

if TYPE_CHECKING:
    import pytest

LOST = frozenset({IN_SYNC, ACKNOWLEDGED, AGREE, KEPT, ONCE, COMMITTED, ATOMIC, WATERMARK, READ, SAME, IN_ORDER})


# ---------------------------------------------------------------------------------------------------------------- replication


def truncate_by_the_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    init, request = FollowedPartition.__init__, FollowedPartition.request

    def cut(self: FollowedPartition, partition: Partition) -> None:
        init(self, partition)
        if partition.log is not None:
            partition.truncate_to(partition.high_watermark, 0)

    monkeypatch.setattr(FollowedPartition, "__init__", cut)
    monkeypatch.setattr(
        FollowedPartition, "request", lambda self, max_bytes: request(self, max_bytes)._replace(last_fetched_epoch=-1)
    )


def truncate_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    request = FollowedPartition.request
    monkeypatch.setattr(
        FollowedPartition, "request", lambda self, max_bytes: request(self, max_bytes)._replace(last_fetched_epoch=-1)
    )


def grow_the_isr_by_whoever_fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = InSyncReplicas.fetched

    def fetch(self: InSyncReplicas, node_id: int, broker_epoch: int, offset: int, *arguments: Any, **named: Any) -> None:
        fetched(self, node_id, broker_epoch, offset, *arguments, **named)
        follower = self.follower(node_id)
        outside = self.isr.proposed is None and node_id not in self.isr.committed
        if outside and follower is not None and self._is_eligible(node_id, follower):
            self._propose(self.isr.committed | {node_id})

    monkeypatch.setattr(InSyncReplicas, "fetched", fetch)


def move_the_high_watermark_by_the_leaders_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InSyncReplicas, "high_watermark", lambda _, own_offset, *__: own_offset)


def acknowledge_what_is_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "is_acknowledged", lambda *_: True)


def reckon_with_the_proposed_isr(monkeypatch: pytest.MonkeyPatch) -> None:
    propose = InSyncReplicas._propose

    def take_at_once(self: InSyncReplicas, isr: frozenset[int]) -> None:
        propose(self, isr)
        self.isr = Isr(isr, isr)

    monkeypatch.setattr(InSyncReplicas, "_propose", take_at_once)


def check_no_leader_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "check_leader_epoch", lambda *_: None)


def lead_on_when_another_is_elected(monkeypatch: pytest.MonkeyPatch) -> None:
    take = ReplicatedRoles.take

    def keep_leading(self: ReplicatedRoles, partition: Partition, record: Any) -> None:
        if partition.leader is None or partition.leader.followers is None or record.leader == self.node_id:
            take(self, partition, record)

    monkeypatch.setattr(ReplicatedRoles, "take", keep_leading)


def follow_with_the_leaders_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Follower, "high_watermark", lambda self, log, _: log.log_end_offset)


def show_what_is_not_replicated(monkeypatch: pytest.MonkeyPatch) -> None:
    read = FetchRead._read_partition

    def read_all(self: FetchRead, partition: Partition, *arguments: Any) -> Any:
        held, partition.high_watermark = partition.high_watermark, partition.require_log().log_end_offset
        try:
            return read(self, partition, *arguments)
        finally:
            partition.high_watermark = held

    monkeypatch.setattr(FetchRead, "_read_partition", read_all)


def tell_the_end_before_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "is_unsettled", False)


def name_no_diverging_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FollowerFetchRead, "_diverging", lambda *_: None)


def follow_without_the_producers_state(monkeypatch: pytest.MonkeyPatch) -> None:
    append = Partition.append_as_follower

    def forget(self: Partition, *arguments: Any) -> Any:
        found = append(self, *arguments)
        if self.log is not None and not self.topic.startswith("__"):
            self.log._producers.load().by_id.clear()
        return found

    monkeypatch.setattr(Partition, "append_as_follower", forget)


def ignore_the_epochs_of_brokers_in_the_isr(monkeypatch: pytest.MonkeyPatch) -> None:
    """KIP-903: an ISR of which a member has been started anew, and has lost something, is accepted."""
    fetched = InSyncReplicas.fetched

    def fetch(self: InSyncReplicas, node_id: int, _: int, *arguments: Any, **named: Any) -> None:
        fetched(self, node_id, -1, *arguments, **named)

    monkeypatch.setattr(InSyncReplicas, "fetched", fetch)
    monkeypatch.setattr(altered_partitions, "_are_eligible", lambda *_: True)
    monkeypatch.setattr(InSyncReplicas, "_is_eligible", lambda *_: True)
    monkeypatch.setattr(BrokersView, "broker_epoch", lambda self, node_id: self._own_epoch() if node_id == self.node_id else -1)


# ----------------------------------------------------------------------------------------------------------------- controller


def elect_out_of_the_isr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        PartitionChange,
        "_may_lead",
        lambda self, replica: (
            self._is_acceptable(replica)
            and (replica not in self.isr or all(not self._is_acceptable(each) for each in self.replicas if each not in self.isr))
        ),
    )


def give_out_a_block_of_producer_ids_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    allocate = ClusterController.allocate_producer_ids
    given: dict[Any, Any] = {}

    def allocate_again(self: ClusterController, request: Any) -> Any:
        reply = allocate(self, request)

        def remember(response: Any) -> None:
            given.setdefault("block", response)

        reply.when_done(remember)
        if "block" in given:
            again: Reply[Any] = Reply()
            again.complete(given["block"])
            return again
        return reply

    monkeypatch.setattr(ClusterController, "allocate_producer_ids", allocate_again)


def take_an_isr_of_an_older_partition_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    check = altered_partitions._epoch_error

    def check_leader_only(partition: Any, leader_id: int, asked: Any) -> Any:
        return check(
            partition, leader_id, asked._replace(partition_epoch=min(asked.partition_epoch, partition.partition_epoch))
        ) and (check(partition, leader_id, asked._replace(partition_epoch=partition.partition_epoch)))

    monkeypatch.setattr(altered_partitions, "_epoch_error", check_leader_only)


def keep_the_isr_of_a_broker_that_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_changes, "shut_down", lambda *_, **__: [])


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


def load_a_coordinator_up_to_the_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    replay = loader._Load._replay

    def replay_some(self: Any, environment: Any) -> Any:
        hosted = self.hosted
        log, hosted.log = hosted.log, _UpToTheHighWatermark(hosted.log)
        try:
            yield from replay(self, environment)
        finally:
            hosted.log = log

    monkeypatch.setattr(loader._Load, "_replay", replay_some)


def write_no_markers_to_other_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    def pretend(*_: Any) -> Reply[None]:
        reply: Reply[None] = Reply()
        reply.complete(None)
        return reply

    monkeypatch.setattr(TransactionPeers, "write_marker", pretend)


def resume_no_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Markers, "resume", lambda _: None)


def answer_commits_that_are_not_replicated(monkeypatch: pytest.MonkeyPatch) -> None:
    append = Partition.append_internal

    def append_and_count(self: Partition, *arguments: Any, **named: Any) -> int:
        end = append(self, *arguments, **named)
        self._advance(end)
        return end

    monkeypatch.setattr(Partition, "append_internal", append_and_count)


def commit_offsets_while_the_transaction_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CommittedOffsets, "replay_marker", lambda *_, **__: None)


def drop_the_next_transactions_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    record = ProducerStates.record_marker

    def record_and_drop(self: ProducerStates, producer_id: int, *arguments: Any) -> Any:
        found = record(self, producer_id, *arguments)
        self._verifications.pop(producer_id, None)
        return found

    monkeypatch.setattr(ProducerStates, "record_marker", record_and_drop)


def answer_while_a_transaction_is_being_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither does the leader ask again, nor does the coordinator wait."""
    monkeypatch.setattr(TransactionPeers, "_max_retry_ms", property(lambda _: 0, lambda *_: None), raising=False)
    monkeypatch.setattr(TransactionCoordinator, "write", lambda self, *arguments: self.runtime.write(*arguments))


def begin_transactions_for_groups_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    read = CoordinatorRuntime.read
    monkeypatch.setattr(
        CoordinatorRuntime,
        "read",
        lambda self, target, look: None if look.__module__ == txn_offset_commit.__name__ else read(self, target, look),
    )


def append_transactions_that_too_few_replicas_get(monkeypatch: pytest.MonkeyPatch) -> None:
    init = PartitionLog.__init__
    monkeypatch.setattr(
        PartitionLog, "__init__", lambda self, partition, compression, _=False: init(self, partition, compression)
    )


MUTATIONS = {
    each.plant.__name__: each
    for each in (
        Mutation(truncate_by_the_high_watermark, LOST, 4),
        Mutation(truncate_nothing, LOST | {REST}, 4),
        Mutation(name_no_diverging_epoch, LOST | {REST}, 4),
        Mutation(grow_the_isr_by_whoever_fetches, LOST, 5),
        Mutation(move_the_high_watermark_by_the_leaders_end, LOST),
        Mutation(acknowledge_what_is_appended, LOST, 4),
        Mutation(reckon_with_the_proposed_isr, LOST, 4),
        Mutation(check_no_leader_epoch, LOST, 91),
        Mutation(lead_on_when_another_is_elected, LOST | {REST}, 4),
        Mutation(follow_with_the_leaders_high_watermark, LOST, 4),
        Mutation(show_what_is_not_replicated, LOST, 3),
        Mutation(tell_the_end_before_it_is_known, LOST, 11),
        Mutation(follow_without_the_producers_state, LOST | {REST}, 1),
        Mutation(ignore_the_epochs_of_brokers_in_the_isr, LOST, 990),
        Mutation(elect_out_of_the_isr, LOST | {REST}, 3),
        Mutation(give_out_a_block_of_producer_ids_twice, LOST | {IDENTITIES}, 1),
        Mutation(take_an_isr_of_an_older_partition_epoch, LOST, 215),
        Mutation(keep_the_isr_of_a_broker_that_was_killed, LOST, 18),
        Mutation(load_a_coordinator_up_to_the_high_watermark, LOST | {IDENTITIES, REST}, 2),
        Mutation(write_no_markers_to_other_brokers, LOST | {REST}),
        Mutation(resume_no_markers, LOST | {REST}, 35),
        Mutation(answer_commits_that_are_not_replicated, LOST),
        Mutation(commit_offsets_while_the_transaction_is_open, LOST | {REST}),
        Mutation(drop_the_next_transactions_verification, frozenset({UNREFUSED}), 27),
        Mutation(answer_while_a_transaction_is_being_completed, frozenset({UNREFUSED}), 27),
        Mutation(begin_transactions_for_groups_elsewhere, frozenset({NOT_BEGUN}), 27),
        Mutation(append_transactions_that_too_few_replicas_get, frozenset({AT_ONCE}), 22),
    )
}


def search(name: str, most: int) -> tuple[int | None, Exception | None]:
    """The first seed, of so many, that finds what is planted, and what it finds."""
    return planted.search(MUTATIONS[name], histories.run, most)
