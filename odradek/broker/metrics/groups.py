"""Metrics of the group coordinator: groups, rebalances, sessions, offsets, and its shards' loads and appends.

A shard's counters begin at 0 each time the shard is loaded.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from odradek.broker.metrics.definitions import Kind, Section, Sum, of_attribute, of_mbean, own, summed
from odradek.broker.metrics.shards import active_shards, shard_metrics
from odradek.coordinator.group.classic.group import GROUP_TYPE as CLASSIC
from odradek.coordinator.group.classic.states import LATENCY_BOUNDS_MS, GroupState, RebalanceCause
from odradek.coordinator.group.consumer.explanations import MoveReason
from odradek.coordinator.group.consumer.group import GROUP_TYPE as CONSUMER
from odradek.coordinator.group.consumer.member import ConsumerGroupState
from odradek.coordinator.group.share.group import GROUP_TYPE as SHARE
from odradek.coordinator.group.share.member import ShareGroupState
from odradek.coordinator.group.streams.group import GROUP_TYPE as STREAMS
from odradek.coordinator.group.streams.member import StreamsGroupState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from enum import Enum

    from odradek.broker.metrics.definitions import MeteredBroker, Metric, Reading, Sample
    from odradek.coordinator.group.consumer.groups import ConsumerGroups
    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.group.share.groups import ShareGroups
    from odradek.coordinator.group.streams.groups import StreamsGroups

_COORDINATOR = "kafka.server:type=group-coordinator-metrics"


def _manager_gauge(name: str, help_: str) -> Metric:
    return of_mbean(f"kafka.coordinator.group:type=GroupMetadataManager,name={name}", Kind.GAUGE, help_)


def _coordinator(name: str, kind: Kind, attribute: str, help_: str, *labels: str) -> Metric:
    return of_attribute(_COORDINATOR, name, kind, attribute, help_, *labels)


GROUPS = _manager_gauge("NumGroups", "Groups of the classic protocol, including groups with only committed offsets.")
GROUPS_BY_PROTOCOL = _coordinator("group_count", Kind.GAUGE, "group-count", "Groups, by protocol.", "protocol")
GROUPS_BY_STATE = {
    state: _manager_gauge(f"NumGroups{state.value}", f"Groups of the classic protocol in state {state.value}.")
    for state in GroupState
    if state is not GroupState.DEAD
}
OFFSETS = _manager_gauge("NumOffsets", "Committed offsets.")
MEMBERS = own("group_members", Kind.GAUGE, "Members of all groups.")
WAITING = own(
    "group_members_waiting",
    Kind.GAUGE,
    "Members whose JoinGroup or SyncGroup waits for other members, by API.",
    "for",
)
REBALANCES = _coordinator(
    "group_completed_rebalance", Kind.COUNTER, "group-completed-rebalance-count", "Rebalances that ended in a stable group."
)
REBALANCES_BEGUN = own("group_rebalances_begun", Kind.COUNTER, "Rebalances begun, by cause.", "cause")
REBALANCES_FAILED = own("group_rebalances_failed", Kind.COUNTER, "Rebalances abandoned because another one began.")
REBALANCE_LATENCY = own(
    "group_rebalance_latency_ms", Kind.HISTOGRAM, "The time from a rebalance's cause to the stable group, in ms."
)
REBALANCE_LATENCY_MAX = own("group_rebalance_latency_max_ms", Kind.GAUGE, "The longest rebalance, in ms.")
LAST_REBALANCE = own(
    "group_last_rebalance_age_ms",
    Kind.GAUGE,
    "The time since the last rebalance of any group ended, in ms. Absent before the first.",
)
CONSUMER_GROUPS = _coordinator(
    "consumer_group_count", Kind.GAUGE, "consumer-group-count", "Groups of the consumer protocol, by state.", "state"
)
EPOCHS_RAISED = _coordinator(
    "consumer_group_rebalance",
    Kind.COUNTER,
    "consumer-group-rebalance-count",
    "Rebalances of groups of the consumer protocol, counted as increases of a group's epoch.",
)
SHARE_GROUPS = _coordinator("share_group_count", Kind.GAUGE, "share-group-count", "Share groups, by state.", "state")
SHARE_EPOCHS_RAISED = _coordinator(
    "share_group_rebalance",
    Kind.COUNTER,
    "share-group-rebalance-count",
    "Rebalances of share groups, counted as increases of a group's epoch.",
)
STREAMS_GROUPS = _coordinator("streams_group_count", Kind.GAUGE, "streams-group-count", "Streams groups, by state.", "state")
STREAMS_EPOCHS_RAISED = _coordinator(
    "streams_group_rebalance",
    Kind.COUNTER,
    "streams-group-rebalance-count",
    "Rebalances of streams groups, counted as increases of a group's epoch.",
)
MOVES = own("group_partition_moves", Kind.COUNTER, "Partitions moved by target assignments, by reason.", "reason")
KEPT = own(
    "group_moved_partition_kept_ms",
    Kind.SUMMARY,
    "The time from a target assignment until the former member gave up a moved partition, in ms.",
)
KEPT_MAX = own(
    "group_moved_partition_kept_max_ms", Kind.GAUGE, "The longest time until a former member gave up a moved partition, in ms."
)
HEARTBEATS = own("group_heartbeats", Kind.COUNTER, "Heartbeats of members.")
SESSIONS_EXPIRED = own("group_sessions_expired", Kind.COUNTER, "Members removed because their session expired.")
GROUPS_DELETED = own("groups_deleted", Kind.COUNTER, "Groups deleted by request.")
COMMITS = _coordinator("offset_commit", Kind.COUNTER, "offset-commit-count", "Offsets committed.")
EXPIRATIONS = _coordinator("offset_expiration", Kind.COUNTER, "offset-expiration-count", "Offsets that expired.")
DELETIONS = _coordinator(
    "offset_deletion", Kind.COUNTER, "offset-deletion-count", "Offsets deleted by request or with their topic."
)
SHARD_METRICS = shard_metrics(
    _COORDINATOR,
    "__consumer_offsets",
    "coordinator",
    loaded_bytes=own("coordinator_loaded_bytes", Kind.COUNTER, "Bytes read while loading shards."),
    loaded_records=own("coordinator_loaded_records", Kind.COUNTER, "Records read while loading shards."),
    skipped_records=own(
        "coordinator_skipped_records", Kind.COUNTER, "Records of an unknown version, skipped while loading shards."
    ),
    append_time_max=_coordinator("batch_flush_time_ms_max", Kind.GAUGE, "batch-flush-time-ms-max", "The longest append, in ms."),
)


def _read_groups(broker: MeteredBroker) -> Iterator[Reading]:
    shards = list(active_shards(broker.groups).values())
    protocols = Counter({CLASSIC: 0, CONSUMER: 0, SHARE: 0, STREAMS: 0})
    states: Counter[str] = Counter()
    members = 0
    for shard in shards:
        for group in shard.groups.groups():
            protocols[group.group_type] += 1
            if group.group_type == CLASSIC:
                states[group.state] += 1
            members += group.member_count
    held = [shard.classic.held_requests() for shard in shards]
    yield GROUPS, [((), protocols[CLASSIC])]
    yield GROUPS_BY_PROTOCOL, [((protocol,), count) for protocol, count in protocols.items()]
    for state, metric in GROUPS_BY_STATE.items():
        yield metric, [((), states[state])]
    yield MEMBERS, [((), members)]
    yield WAITING, [(("join",), sum(joins for joins, _ in held)), (("sync",), sum(syncs for _, syncs in held))]
    yield from _read_rebalances(broker, shards)
    yield from _read_consumer_groups(shards)
    share_groups = [share for shard in shards if (share := shard.share_if_made) is not None]
    yield SHARE_GROUPS, _by_state(share_groups, ShareGroupState)
    yield SHARE_EPOCHS_RAISED, [((), sum(each.epochs_raised for each in share_groups))]
    streams_groups = [streams for shard in shards if (streams := shard.streams_if_made) is not None]
    yield STREAMS_GROUPS, _by_state(streams_groups, StreamsGroupState)
    yield STREAMS_EPOCHS_RAISED, [((), sum(each.epochs_raised for each in streams_groups))]


def _read_rebalances(broker: MeteredBroker, shards: list[GroupShard]) -> Iterator[Reading]:
    counters = [shard.classic.counters for shard in shards]
    yield REBALANCES, [((), sum(c.rebalances_completed for c in counters))]
    begun = {cause: sum(c.rebalances_by_cause.get(cause, 0) for c in counters) for cause in RebalanceCause}
    yield REBALANCES_BEGUN, [((cause.value,), count) for cause, count in begun.items()]
    yield REBALANCES_FAILED, [((), sum(c.rebalances_abandoned for c in counters))]
    latency_sum_ms = sum(c.latency_sum_ms for c in counters)
    yield REBALANCE_LATENCY, [((), summed(LATENCY_BOUNDS_MS, [c.latency_buckets for c in counters], latency_sum_ms))]
    yield REBALANCE_LATENCY_MAX, [((), max((c.latency_max_ms for c in counters), default=0.0))]
    ends_ms = [c.last_rebalance_ms for c in counters if c.last_rebalance_ms is not None]
    yield LAST_REBALANCE, [((), broker.clock.monotonic_ms() - max(ends_ms))] if ends_ms else []
    made = [
        each
        for shard in shards
        for each in (shard.consumer_if_made, shard.share_if_made, shard.streams_if_made)
        if each is not None
    ]
    yield HEARTBEATS, [((), sum(c.heartbeats for c in counters) + sum(each.heartbeats for each in made))]
    expired = sum(c.sessions_expired for c in counters) + sum(each.sessions_expired for each in made)
    yield SESSIONS_EXPIRED, [((), expired)]
    yield GROUPS_DELETED, [((), sum(shard.groups.groups_deleted for shard in shards))]


def _read_consumer_groups(shards: list[GroupShard]) -> Iterator[Reading]:
    made = [consumer for shard in shards if (consumer := shard.consumer_if_made) is not None]
    counters = [consumer.why.counters for consumer in made]
    yield CONSUMER_GROUPS, _by_state(made, ConsumerGroupState)
    yield EPOCHS_RAISED, [((), sum(c.raised for c in counters))]
    yield MOVES, [((reason.name.lower(),), sum(c.moves[reason] for c in counters)) for reason in MoveReason]
    yield KEPT, [((), Sum(sum(c.given_up for c in counters), sum(c.kept_sum_ms for c in counters)))]
    yield KEPT_MAX, [((), max((c.kept_max_ms for c in counters), default=0.0))]


def _by_state(made: Iterable[ConsumerGroups | ShareGroups | StreamsGroups], states: type[Enum]) -> list[Sample]:
    counts = Counter(group.state for groups in made for group in groups.each())
    # As Kafka writes them: not_ready.
    return [((state.name.lower(),), counts[state.value]) for state in states]


def _read_offsets(broker: MeteredBroker) -> Iterator[Reading]:
    offsets = [shard.offsets for shard in active_shards(broker.groups).values()]
    yield OFFSETS, [((), sum(map(len, offsets)))]
    yield COMMITS, [((), sum(of_shard.counters.commits for of_shard in offsets))]
    yield EXPIRATIONS, [((), sum(of_shard.counters.expirations for of_shard in offsets))]
    yield DELETIONS, [((), sum(of_shard.counters.deletions for of_shard in offsets))]


GROUP_SECTION = Section(
    "Groups",
    (
        GROUPS,
        GROUPS_BY_PROTOCOL,
        *GROUPS_BY_STATE.values(),
        MEMBERS,
        WAITING,
        REBALANCES,
        REBALANCES_BEGUN,
        REBALANCES_FAILED,
        REBALANCE_LATENCY,
        REBALANCE_LATENCY_MAX,
        LAST_REBALANCE,
        CONSUMER_GROUPS,
        EPOCHS_RAISED,
        SHARE_GROUPS,
        SHARE_EPOCHS_RAISED,
        STREAMS_GROUPS,
        STREAMS_EPOCHS_RAISED,
        MOVES,
        KEPT,
        KEPT_MAX,
        HEARTBEATS,
        SESSIONS_EXPIRED,
        GROUPS_DELETED,
    ),
    _read_groups,
)
OFFSET_SECTION = Section("Offsets", (OFFSETS, COMMITS, EXPIRATIONS, DELETIONS), _read_offsets)
SHARD_SECTION = Section(
    "The group coordinator's shards",
    SHARD_METRICS.shown(),
    lambda broker: SHARD_METRICS.read(broker.groups),
)
