"""Groups of the second kind: operations that are common to all groups know consumer groups by the interface alone."""

import pytest

from odradek.coordinator.group.offset_commit import commit_offsets_in_transaction
from odradek.coordinator.group.offsets import OffsetConfig
from odradek.coordinator.group.registry import group_filter
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages
from tests.coordinator.group.bed import Answer
from tests.coordinator.group.consumer_bed import ConsumerBed
from tests.coordinator.group.offsets_bed import OffsetsBed
from tests.coordinator.long_work import finished

TXN = messages(ApiKey.TXN_OFFSET_COMMIT)


class Bed(OffsetsBed, ConsumerBed):
    """The consumer group ``g`` of ``ada``, in epoch 2, who reads the topic ``tune``."""

    def __init__(self):
        super().__init__(OffsetConfig(offsets_retention_ms=1_000, offsets_retention_check_interval_ms=100))
        self.topic("tune", 1)
        self.accepted("ada", 0, subscribed_topic_names=["tune"])

    def commit_of_ada(self, **options):
        return self.commit({0: 5}, **{"member_id": "ada", "generation": 2, "topic_id": None, **options})

    def commit_in_transaction(self, member_id, epoch, version=6):
        partition = TXN.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=8)
        request = TXN.TxnOffsetCommitRequest(
            group_id="g", producer_id=1, producer_epoch=0, member_id=member_id, generation_id_or_member_epoch=epoch
        )
        answer = Answer()
        self.write(
            lambda shard: commit_offsets_in_transaction(shard.offsets, request, [(None, [partition], "t")], version), answer.reply
        )
        return answer.response.code if isinstance(answer.response, KafkaError) else ErrorCode.NONE

    def listed(self):
        listing = self.runtime.read(0, lambda shard, offset: shard.list_groups(group_filter(()), group_filter(()), offset))
        return sorted((each.group_id, each.group_type) for each in finished(listing))


@pytest.fixture
def bed():
    return Bed()


def test_commits_in_transactions_are_validated_by_the_group(bed):
    assert bed.commit_in_transaction("ada", 1, version=5) == ErrorCode.ILLEGAL_GENERATION
    assert bed.commit_in_transaction("ada", 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert bed.commit_in_transaction("eve", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bed.commit_in_transaction("ada", 2) == ErrorCode.NONE


def test_offsets_of_topics_that_are_read_are_not_deleted(bed):
    assert bed.commit_of_ada(topic="tune") == bed.commit_of_ada() == [ErrorCode.NONE]
    assert bed.delete(0, topic="tune") == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    assert bed.delete(0) == [ErrorCode.NONE]
    assert list(bed.committed.by_group["g"]) == ["tune"]


def test_offsets_expire_and_the_empty_group_with_the_last_of_them(bed):
    bed.commit_of_ada(topic="tune")
    bed.commit_of_ada()
    bed.advance(1_100)
    assert list(bed.committed.by_group["g"]) == ["tune"]
    bed.beat("ada", -1)
    bed.advance(1_100)
    assert (list(bed.committed.by_group), bed.listed()) == ([], [])


def test_an_empty_group_is_deleted_with_its_offsets(bed):
    bed.commit_of_ada()
    bed.delete_group()
    assert bed.listed() == [("g", "consumer")]
    bed.beat("ada", -1)
    bed.delete_group()
    assert (list(bed.committed.by_group), bed.listed(), bed.shard.groups.groups_deleted) == ([], [], 1)


@pytest.mark.parametrize(
    ("version", "code", "message"),
    [(6, ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a classic group."), (5, ErrorCode.NONE, None)],
)
def test_a_group_that_describe_groups_does_not_show_is_not_found(bed, version, code, message):
    described = bed.runtime.read(0, lambda shard, offset: shard.describe_group("g", version, offset))
    assert (described.error_code, described.group_state, described.error_message) == (code, "Dead", message)


def test_a_restart_restores_groups_of_both_kinds(bed):
    bed.add_member("c", group_id="classic")
    bed.restart()
    assert bed.listed() == [("classic", "classic"), ("g", "consumer")]
    assert bed.commit({0: 6}, member_id="eve", generation=2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_unloaded_shard_forgets_its_groups(bed):
    shard = bed.shard
    bed.unload()
    assert shard.groups.live == {}
