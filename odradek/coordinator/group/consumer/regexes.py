"""Subscriptions by regular expressions, which the coordinator resolves and keeps as records.

A group's regular expressions are resolved together, off the event loop, and the result is an operation of its own:

    when    a heartbeat finds a new expression, or an unresolved one, or topics that are newer than the
            last resolution, or a resolution older than ``group.consumer.regex.refresh.interval.ms``
    never   twice at a time for one group, nor within ten seconds of the last resolution

Until then, a new expression gives its member no topics. The syntax is RE2's, as in Kafka (RE2/J), and it matches whole names.

Source: ``GroupMetadataManager.maybeUpdateRegularExpressions`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.coordinator.group.consumer.member import epoch_record, regex_record, regex_tombstone
from odradek.coordinator.group.sessions import NOTHING_DECIDED
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.coordinator_records.consumer_groups import ConsumerGroupRegularExpressionValue
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.patterns import InvalidPattern, Pattern, compile_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from odradek.coordinator.group.consumer.group import ConsumerGroup
    from odradek.coordinator.group.consumer.groups import ConsumerGroups
    from odradek.coordinator.group.consumer.member import ConsumerMember
    from odradek.coordinator.runtime.result import CoordinatorRecord

# Kafka's constant, for which it has no config.
REFRESH_AT_MOST_EVERY_MS: Final = 10_000
_LONGEST_PATTERN: Final = 10_000


class RegexChange(Enum):
    """The effect of a heartbeat on its member's regular expression."""

    NONE = auto()
    UPDATED = auto()
    # The topics of the new expression are known, or the member dropped its expression.
    UPDATED_AND_RESOLVED = auto()


def compile_regex(regex: str) -> Pattern:
    """Compile an expression. Raises KafkaError: INVALID_REGULAR_EXPRESSION."""
    try:
        return compile_pattern(regex, _LONGEST_PATTERN)
    except InvalidPattern as error:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"not a regular expression, {regex}: {error}") from None


def resolve(regexes: Sequence[str], names: Sequence[str], pause: Callable[[], None]) -> dict[str, list[str]]:
    """Return the names that each expression matches, sorted. An invalid expression matches none. For any thread."""
    found: dict[str, list[str]] = {}
    for regex in regexes:
        found[regex] = []
        try:
            pattern = compile_regex(regex)
        except KafkaError:
            continue
        for name in sorted(names):
            pause()
            if pattern.fullmatch(name) is not None:
                found[regex].append(name)
    return found


def update_regexes(
    groups: ConsumerGroups,
    group: ConsumerGroup,
    old: ConsumerMember,
    new: ConsumerMember,
    records: list[CoordinatorRecord],
    may_see: Callable[[str], bool] | None = None,
) -> RegexChange:
    """Update the group's expressions for ``new``, and resolve them if due, to topics that its client ``may_see``.

    KafkaError: INVALID_REGULAR_EXPRESSION.
    """
    before, now = old.subscribed_topic_regex or "", new.subscribed_topic_regex or ""
    change = RegexChange.NONE
    must_resolve = False
    if before != now:
        change = RegexChange.UPDATED
        if before and group.regex_counts.get(before) == 1 and before in group.regexes:
            records.append(regex_tombstone(group.group_id, before))
        if not now:
            change = RegexChange.UPDATED_AND_RESOLVED
        elif now not in group.regex_counts:
            compile_regex(now)
            must_resolve = True
        elif now in group.regexes:
            change = RegexChange.UPDATED_AND_RESOLVED
    elif not group.regex_counts:
        return change
    _maybe_resolve(groups, group, (before, now), may_see, must_resolve=must_resolve)
    return change


def _maybe_resolve(
    groups: ConsumerGroups,
    group: ConsumerGroup,
    change: tuple[str, str],
    may_see: Callable[[str], bool] | None,
    *,
    must_resolve: bool,
) -> None:
    group_id = group.group_id
    now_ms = groups.clock.now_ms()
    refreshed_ms = max((each.timestamp_ms for each in group.regexes.values()), default=0)
    if group_id in groups.resolving or now_ms <= refreshed_ms + REFRESH_AT_MOST_EVERY_MS:
        return
    counts = dict(group.regex_counts.items())
    before, now = change
    if before != now:
        if before:
            counts[before] = counts.get(before, 0) - 1
        if now:
            counts[now] = counts.get(now, 0) + 1
    regexes = [regex for regex, count in counts.items() if count > 0]
    oldest_version = min((each.version for each in group.regexes.values()), default=0)
    is_due = (
        must_resolve
        or len(regexes) != len(group.regexes)
        or oldest_version < groups.newest_topics_version
        or now_ms > refreshed_ms + groups.config_of(group_id).regex_refresh_interval_ms
    )
    if not regexes or not is_due:
        return
    groups.resolving.add(group_id)
    version = groups.topics.version
    resolved = partial(_resolved, groups, group_id, version, now_ms, may_see)
    groups.run_beside(partial(resolve, regexes, groups.topics.names()), resolved)


def _resolved(
    groups: ConsumerGroups,
    group_id: str,
    version: int,
    now_ms: int,
    may_see: Callable[[str], bool] | None,
    outcome: Mapping[str, Sequence[str]] | KafkaError,
) -> None:
    groups.resolving.discard(group_id)
    if isinstance(outcome, KafkaError):
        groups.reports.warn("cannot resolve regular expressions", group=group_id, error=outcome.code.name)
    elif groups.timers.is_open:
        if may_see is not None:
            outcome = {regex: list(filter(may_see, names)) for regex, names in outcome.items()}
        groups.timers.write(lambda: take_resolved(groups, group_id, version, now_ms, outcome))


def take_resolved(
    groups: ConsumerGroups, group_id: str, version: int, now_ms: int, resolved: Mapping[str, Sequence[str]]
) -> CoordinatorResult[None]:
    """Store the resolved topics. Raises the group's epoch if they changed."""
    group = groups.find(group_id)
    if group is None:
        return NOTHING_DECIDED
    records: list[CoordinatorRecord] = []
    has_changed = False
    topics: dict[str, frozenset[str]] = {regex: group.names_matching(regex) for regex in group.regex_counts}
    for regex, names in resolved.items():
        if regex in group.regex_counts:
            has_changed = has_changed or topics[regex] != frozenset(names)
            topics[regex] = frozenset(names)
            value = ConsumerGroupRegularExpressionValue(tuple(names), version, now_ms)
            records.append(regex_record(group_id, regex, value))
    metadata_hash = groups.metadata_hash(set(group.name_counts).union(*topics.values()))
    if has_changed or metadata_hash != group.metadata_hash.get():
        epoch = group.epoch.get() + 1
        groups.why.note_raised(
            group_id, "its regular expressions match other topics" if has_changed else "its topics have changed"
        )
        records.append(epoch_record(group_id, epoch, metadata_hash))
        group.fresh_epoch = epoch
    return CoordinatorResult(records, None)
