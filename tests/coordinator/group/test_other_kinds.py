"""A second kind of group: operations that are common to all groups know it by the interface alone."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.coordinator.group.group_describe import group_filter
from odradek.coordinator.group.offset_fetch import fetch_offsets
from odradek.coordinator.group.offsets import OffsetConfig
from odradek.coordinator.group.txn_offsets import commit_offsets_in_transaction
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages
from tests.coordinator.group.bed import Answer
from tests.coordinator.group.choir import ChoirBed, choir_record
from tests.coordinator.group.offsets_bed import FETCH
from tests.coordinator.long_work import finished

TXN = messages(ApiKey.TXN_OFFSET_COMMIT)


@pytest.fixture
def bed() -> ChoirBed:
    """A shard with the choir ``g`` of two singers."""
    bed = ChoirBed(OffsetConfig(offsets_retention_ms=1_000, offsets_retention_check_interval_ms=100))
    _sing(bed, "g", "ada", "bo")
    return bed


def _sing(bed: ChoirBed, group_id: str, *singers: str) -> None:
    bed.write(lambda _: CoordinatorResult([choir_record(group_id, *singers)], None), Answer().reply)


def _listed(bed: ChoirBed, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> list[tuple[str, str, str, str]]:
    listing = bed.runtime.read(0, lambda shard, offset: shard.list_groups(group_filter(states), group_filter(types), offset))
    listed: Any = finished(listing)
    return sorted((each.group_id, each.group_type, each.group_state, each.protocol_type) for each in listed)


def _described(bed: ChoirBed, version: int = 6) -> Any:
    return bed.runtime.read(0, lambda shard, offset: shard.describe_group("g", version, offset))


def _delete(bed: ChoirBed, group_id: str = "g") -> ErrorCode:
    answer = Answer()
    bed.write(lambda shard: shard.delete_group(group_id), answer.reply)
    return ErrorCode(answer.response.error_code)


def _fetched(bed: ChoirBed, member_id: str | None) -> list[int] | ErrorCode:
    topics = [FETCH.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    request = FETCH.OffsetFetchRequestGroup(group_id="g", member_id=member_id, topics=topics)
    try:
        answer = bed.runtime.read(0, lambda shard, offset: fetch_offsets(shard.offsets, request, offset))
    except KafkaError as error:
        return error.code
    return [partition.committed_offset for partition in answer.topics[0].partitions]


def _commit_in_transaction(bed: ChoirBed, member_id: str) -> ErrorCode:
    partition = TXN.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=8)
    request = TXN.TxnOffsetCommitRequest(
        group_id="g",
        producer_id=1,
        producer_epoch=0,
        member_id=member_id,
        topics=[TXN.TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    answer = Answer()
    bed.write(lambda shard: commit_offsets_in_transaction(shard.offsets, request), answer.reply)
    return answer.response.code if isinstance(answer.response, KafkaError) else ErrorCode.NONE


def test_commits_are_validated_by_the_group(bed):
    assert bed.commit({0: 5}, member_id="eve") == ErrorCode.UNKNOWN_MEMBER_ID
    assert bed.commit({0: 5}, member_id="ada") == [ErrorCode.NONE]


def test_commits_in_transactions_are_validated_by_the_group(bed):
    assert _commit_in_transaction(bed, "eve") == ErrorCode.ILLEGAL_GENERATION
    assert _commit_in_transaction(bed, "bo") == ErrorCode.NONE


def test_the_kind_learns_who_has_committed(bed):
    bed.commit({0: 5}, member_id="eve")
    bed.commit({0: 5}, member_id="ada")
    _commit_in_transaction(bed, "bo")

    assert bed.shard.alive == ["ada", "bo"]


def test_fetches_are_validated_by_the_group(bed):
    bed.commit({0: 5}, member_id="ada")

    assert _fetched(bed, "bo") == [5]
    assert _fetched(bed, "eve") == ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_topics_that_are_read_are_not_deleted(bed):
    bed.commit({0: 5}, topic="tune", member_id="ada")
    bed.commit({0: 5}, member_id="ada")

    assert bed.delete(0, topic="tune") == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    assert bed.delete(0) == [ErrorCode.NONE]
    assert list(bed.committed.by_group["g"]) == ["tune"]


def test_offsets_expire_and_the_empty_group_with_the_last_of_them(bed):
    bed.commit({0: 5}, topic="tune", member_id="ada")
    bed.commit({0: 5}, member_id="ada")

    bed.advance(1_100)
    assert list(bed.committed.by_group["g"]) == ["tune"]

    _sing(bed, "g")
    bed.advance(1_100)
    assert (list(bed.committed.by_group), _listed(bed)) == ([], [])


def test_a_group_with_members_is_not_deleted(bed):
    assert (_delete(bed), len(_listed(bed))) == (ErrorCode.NON_EMPTY_GROUP, 1)


def test_an_empty_group_is_deleted_with_its_offsets(bed):
    bed.commit({0: 5}, member_id="ada")
    _sing(bed, "g")

    assert _delete(bed) == ErrorCode.NONE
    assert (list(bed.committed.by_group), _listed(bed), bed.shard.groups.groups_deleted) == ([], [], 1)
    assert _delete(bed) == ErrorCode.GROUP_ID_NOT_FOUND


def test_groups_are_listed_by_type_and_state(bed):
    bed.commit({0: 5}, group_id="simple")
    choir, simple = ("g", "choir", "Singing", "song"), ("simple", "classic", "Empty", "")

    assert _listed(bed) == [choir, simple]
    assert _listed(bed, types=("Choir",)) == [choir]
    assert _listed(bed, types=("classic",)) == [simple]
    assert _listed(bed, states=("singing",)) == [choir]
    assert _listed(bed, states=("Empty",), types=("choir",)) == []


def test_a_group_is_described_as_it_describes_itself(bed):
    described = _described(bed)

    assert (described.error_code, described.group_state, described.protocol_type) == (ErrorCode.NONE, "Singing", "song")
    assert [member.member_id for member in described.members] == ["ada", "bo"]


def test_a_group_that_describe_groups_does_not_show_is_not_found(bed):
    bed.group().is_shown = False

    described = _described(bed)
    assert (described.error_code, described.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert described.error_message == "Group g is not a classic group."
    assert (_described(bed, 5).error_code, _described(bed, 5).group_state) == (ErrorCode.NONE, "Dead")


def test_a_member_of_the_classic_protocol_cannot_join_it(bed):
    for member_id in ("", "ada"):
        assert bed.join(member_id).response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bed.sync("ada", 1).response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert bed.heartbeat("ada") == ErrorCode.UNKNOWN_MEMBER_ID
    assert [member.error_code for member in bed.leave(("ada", None, None)).members] == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert _listed(bed) == [("g", "choir", "Singing", "song")]


def test_a_restart_restores_groups_of_both_kinds(bed):
    bed.add_member("c", group_id="classic")
    bed.commit({0: 5}, member_id="ada")

    bed.restart()

    assert [(group_id, group_type) for group_id, group_type, _, _ in _listed(bed)] == [("classic", "classic"), ("g", "choir")]
    assert bed.commit({0: 6}, member_id="eve") == ErrorCode.UNKNOWN_MEMBER_ID
    assert _fetched(bed, "bo") == [5]


def test_a_failed_append_takes_the_group_back(bed):
    bed.log.failures.append(ErrorCode.KAFKA_STORAGE_ERROR)
    _sing(bed, "g")

    assert _listed(bed) == [("g", "choir", "Singing", "song")]


def test_an_unloaded_shard_forgets_its_groups(bed):
    shard = bed.shard
    bed.unload()

    assert shard.groups.live == {}
