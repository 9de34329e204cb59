"""ShareFetch on a broker: sessions, errors of partitions, waiting, acknowledgements on a fetch."""

import asyncio
from uuid import UUID

import pytest

from odradek.controller.metadata.client_quotas import CONSUMER_BYTE_RATE
from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import share_fetch
from odradek.protocol.message_types.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.message_types.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from odradek.protocol.records import Record, build_batch
from tests.broker.api.bed import ask, make_broker
from tests.broker.api.consumer_requests import set_configs
from tests.broker.api.in_process import Node, new_broker
from tests.broker.api.share_members import ACCEPT, GAP, RELEASE, RENEW, Member, begin_group, errors, told
from tests.broker.quotas.bed import quota
from tests.broker.replica.replication_bed import FIRST, LEADER, FakeReplication, lead

VALUES = [b"a", b"b", b"c"]


@pytest.fixture
async def topic_id(node):
    """A topic with two partitions that group ``g`` reads from their beginning."""
    topic_id = await node.create(partition_count=2)
    await begin_group(node, topic_id, 0, 1)
    return topic_id


def test_without_the_feature_the_request_is_refused():
    broker = make_broker("t")
    broker.controller.image.features.pop("share.version", None)
    assert ask(broker, ApiKey.SHARE_FETCH, group_id="g", member_id="m").error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_members_acquire_acknowledge_and_fetch_again(node, topic_id):
    one, two = Member(node, topic_id, "one"), Member(node, topic_id, "two")
    for _ in range(2):
        await node.produce(values=VALUES)
    first = await one.fetch(0, 1, max_records=2)
    # Whole record batches; the first response of a session names all its partitions.
    assert told(first) == {0: ((0, 2, 1), "0-2"), 1: ()}
    assert first.acquisition_lock_timeout_ms == 30_000
    assert told(await two.fetch(0)) == {0: ((3, 5, 1), "3-5")}
    # Later ones name partitions with news only; an acknowledged one is named for its outcome.
    assert told(await one.fetch()) == {}
    assert told(await one.fetch(acknowledge=[(0, 0, 1, ACCEPT), (0, 2, 2, RELEASE)])) == {0: ()}
    assert told(await two.fetch(acknowledge=[(0, 3, 5, ACCEPT)])) == {0: ((2, 2, 2), "0-2")}
    assert told(await two.fetch(acknowledge=[(0, 0, 1, ACCEPT), (0, 2, 2, ACCEPT)])) == {0: ()}
    await node.produce(values=VALUES)
    assert told(await one.fetch(share_acquire_mode=1, max_records=2)) == {0: ((6, 7, 1), "6-8")}


async def test_the_session_decides_on_epochs(node, topic_id):
    member = Member(node, topic_id)
    assert (await member.fetch(epoch=1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert (await member.fetch(epoch=-1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert (await member.fetch(acknowledge=[(0, 0, 0, ACCEPT)], epoch=0)).error_code == ErrorCode.INVALID_REQUEST
    assert told(await member.fetch(0)) == {0: ()}
    assert (await member.fetch(epoch=2)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert told(await member.fetch(1)) == {1: ()}
    assert told(await member.fetch(forget=[0])) == {}
    await node.produce(values=VALUES)
    assert told(await member.fetch()) == {}
    assert told(await member.fetch(epoch=0)) == {}
    assert (await member.fetch(epoch=4)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH


async def test_the_final_epoch_acknowledges_and_releases_the_rest(node, topic_id):
    await node.produce(values=VALUES)
    one, two = Member(node, topic_id, "one"), Member(node, topic_id, "two")
    assert told(await one.fetch(0)) == {0: ((0, 2, 1), "0-2")}
    assert told(await one.fetch(acknowledge=[(0, 1, 1, ACCEPT)], epoch=-1)) == {0: ()}
    assert (await one.fetch(epoch=1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert told(await two.fetch(0, max_wait_ms=1_000)) == {0: ((0, 0, 2), (2, 2, 2), "0-2")}


async def test_each_wrong_request_gets_kafkas_error(node, topic_id):
    member = Member(node, topic_id)
    unnamed = share_fetch.ShareFetchRequest(group_id=None, member_id="m")
    for request in (unnamed, unnamed._replace(group_id="g", member_id=""), unnamed._replace(group_id="g", member_id="x" * 37)):
        assert (await node.ask(ApiKey.SHARE_FETCH, request)).error_code == ErrorCode.INVALID_REQUEST
    assert (await member.fetch(0, is_renew_ack=True, epoch=0)).error_code == ErrorCode.INVALID_REQUEST
    assert told(await member.fetch(0, 7)) == {0: (), 7: ("UNKNOWN_TOPIC_OR_PARTITION",)}
    stranger = Member(node, UUID(int=99), "stranger")
    assert told(await stranger.fetch(0)) == {0: ("UNKNOWN_TOPIC_ID",)}
    # A group without a state is unknown to the share coordinator.
    other = Member(node, topic_id, "other", group_id="h")
    assert set(told(await other.fetch(0))) == {0}


async def test_odd_wishes_are_answered_as_kafka_does(node, topic_id):
    """Kafka fails the fetch for an unknown acquire mode, but not its acknowledgements; negative bytes fail a partition."""
    member, other = Member(node, topic_id), Member(node, topic_id, "other")
    for _ in range(3):
        await node.produce(values=VALUES)
    assert told(await member.fetch(0, min_bytes=-1, max_wait_ms=-1, max_records=-1)) == {0: ()}
    assert told(await member.fetch(max_bytes=0, max_wait_ms=1_000)) == {}
    assert told(await member.fetch(max_bytes=-1, max_wait_ms=1_000)) == {0: ("UNKNOWN_SERVER_ERROR",)}
    # In batches of one record at least.
    for size, first_offset in ((0, 0), (-1, 3)):
        fetched = await member.fetch(batch_size=size, max_records=3, min_bytes=-1, max_wait_ms=-1)
        assert told(fetched) == {0: ((first_offset, first_offset + 2, 1), f"{first_offset}-{first_offset + 2}")}
    for mode in (2, -1):
        refused = await member.fetch(acknowledge=[(0, mode + 1, mode + 1, ACCEPT)], share_acquire_mode=mode)
        assert (refused.error_code, refused.responses) == (ErrorCode.UNKNOWN_SERVER_ERROR, ())
    # Where there is nothing to read, no mode matters.
    assert told(await other.fetch(7, share_acquire_mode=2)) == {7: ("UNKNOWN_TOPIC_OR_PARTITION",)}
    assert (await member.fetch(epoch=-1, share_acquire_mode=2)).error_code == ErrorCode.NONE
    assert told(await other.fetch(0, min_bytes=10_000, max_wait_ms=100)) == {
        0: ((1, 2, 2), (4, 5, 2), (6, 8, 1), "0-8"),
        7: ("UNKNOWN_TOPIC_OR_PARTITION",),
    }


async def test_a_member_over_its_fetch_quota_gets_the_records_that_it_acquired_and_a_throttle_time(node, topic_id):
    quota(node.core, CONSUMER_BYTE_RATE, 50, client_id=None)
    for _ in range(3):
        await node.produce(values=[bytes(300)])
    first = await Member(node, topic_id).fetch(0)
    # No more at once than an idle client may have.
    assert (told(first), first.throttle_time_ms) == ({0: ((0, 0, 1), "0-0")}, 0)
    second = await Member(node, topic_id, "other").fetch(0)
    assert (told(second), second.throttle_time_ms) == ({0: ((1, 1, 1), "1-1")}, pytest.approx(7_920, abs=80))


async def test_a_renewal_keeps_records_and_fetches_nothing(node, topic_id):
    await node.produce(values=VALUES, timestamp=node.broker.clock.now_ms())
    member, other = Member(node, topic_id), Member(node, topic_id, "other")
    await member.fetch(0)
    node.broker.clock.advance(29_000)
    quiet = {"is_renew_ack": True, "max_bytes": 0, "min_bytes": 0, "max_records": 0}
    assert told(await member.fetch(acknowledge=[(0, 0, 1, RENEW)], **quiet)) == {0: ()}
    node.broker.clock.advance(29_000)
    assert told(await other.fetch(0, max_wait_ms=1_000)) == {0: ((2, 2, 2), "0-2")}
    # Only with is_renew_ack, and not before version 2.
    assert told(await member.fetch(acknowledge=[(0, 0, 1, RENEW)])) == {0: ("INVALID_REQUEST",)}
    assert told(await member.fetch(acknowledge=[(0, 0, 1, RENEW)], version=1)) == {0: ("INVALID_REQUEST",)}


async def test_a_fetch_waits_for_records_for_released_ones_and_for_expired_locks(node, topic_id):
    one, two = Member(node, topic_id, "one"), Member(node, topic_id, "two")
    await one.fetch(0)
    await two.fetch(0)
    for wake, expected in (
        (lambda: node.produce(values=VALUES, timestamp=node.broker.clock.now_ms()), ((0, 2, 1), "0-2")),
        (lambda: one.acknowledge((0, 1, 1, RELEASE)), ((1, 1, 2), "0-2")),
    ):
        waiting = asyncio.ensure_future((one if expected[0][2] == 1 else two).fetch(max_wait_ms=5_000))
        await asyncio.sleep(0)
        assert not waiting.done()
        await wake()
        assert told(await waiting) == {0: expected}
    waiting = asyncio.ensure_future(one.fetch(max_wait_ms=100_000))
    await asyncio.sleep(0)
    assert node.core.share_partitions.purgatory.delayed == 1
    node.broker.clock.advance(30_000)
    assert told(await waiting) == {0: ((0, 0, 2), (1, 1, 3), (2, 2, 2), "0-2")}
    assert node.core.share_partitions.purgatory.delayed == 0


async def test_a_full_cache_of_sessions_refuses_a_new_one_after_the_max_wait():
    async with new_broker(group_share_max_share_sessions="1", group_share_max_size="1") as broker:
        node = Node(broker)
        topic_id = await node.create()
        await begin_group(node, topic_id)
        assert told(await Member(node, topic_id, "one").fetch(0)) == {0: ()}
        before = broker.clock.monotonic_ms()
        response = await Member(node, topic_id, "two").fetch(0, max_wait_ms=500)
        assert response.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
        assert broker.clock.monotonic_ms() - before >= 500
        assert told(await Member(node, topic_id, "one").fetch(0)) == {0: ()}


async def test_the_state_survives_a_restart(node, topic_id):
    await node.produce(values=VALUES)
    await node.produce(values=VALUES)
    member = Member(node, topic_id)
    assert told(await member.fetch(0)) == {0: ((0, 5, 1), "0-5")}
    assert errors(await member.acknowledge((0, 0, 1, ACCEPT), (0, 3, 3, ACCEPT), (0, 4, 4, RELEASE))) == {0: None}
    await node.restart()
    member = Member(node, topic_id)
    # 2 and 5 were acquired, and are available again; the release of 4 was stored with its delivery.
    assert told(await member.fetch(0, max_wait_ms=1_000)) == {0: ((2, 2, 1), (4, 4, 2), (5, 5, 1), "0-5")}


async def test_read_committed_leaves_aborted_records_out_and_stops_at_open_transactions(node, topic_id):
    assert (await set_configs(node, "g", share_isolation_level="read_committed"))[0] == ErrorCode.NONE
    partition = node.core.partitions.get("t", 0)

    def append(producer_id, sequence):
        records = [Record(value=value, timestamp=1) for value in VALUES]
        batch = build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)
        partition.append(batch, 1, transaction_verified=True)

    def end(producer_id, *, is_commit):
        partition.append_marker(EndTxnMarker(producer_id, 0, 0, is_commit, 1), 1)

    append(7, 0)
    append(8, 0)
    end(7, is_commit=False)
    append(7, 3)
    member = Member(node, topic_id)
    assert told(await member.fetch(0)) == {0: ()}
    end(8, is_commit=True)
    # Before the open transaction: 0-2 are aborted, 3-5 committed, 6 is a marker.
    assert told(await member.fetch()) == {0: ((3, 6, 1), "3-6")}
    end(7, is_commit=True)
    assert errors(await member.acknowledge((0, 3, 5, ACCEPT), (0, 6, 6, GAP))) == {0: None}
    assert told(await member.fetch()) == {0: ((7, 11, 1), "7-11")}


async def test_records_that_the_log_has_removed_are_skipped(node, topic_id):
    for _ in range(3):
        await node.produce(values=VALUES)
    member = Member(node, topic_id)
    partition = node.core.partitions.get("t", 0)
    partition.log.delete_records_before(4)
    assert told(await member.fetch(0)) == {0: ()}
    assert told(await member.fetch()) == {0: ((4, 8, 1), "3-8")}


async def test_a_leader_that_is_elected_again_forgets_what_it_had_before(node, topic_id):
    """Another broker may have led meanwhile, and changes of a partition may be learnt together."""
    await node.produce(values=VALUES)
    member = Member(node, topic_id)
    assert told(await member.fetch(0)) == {0: ((0, 2, 1), "0-2")}
    partition = node.core.partitions.get("t", 0)
    partition.become_leader(partition.leader_epoch)
    assert told(await member.fetch()) == {}
    partition.become_leader(partition.leader_epoch + 2)
    assert list(node.core.share_partitions) == []
    assert told(await member.fetch(max_wait_ms=5_000)) == {0: ((0, 2, 1), "0-2")}


async def test_a_leader_that_stays_so_in_the_next_epoch_keeps_what_is_in_flight(node, topic_id):
    """A reassignment that has ended raises the epoch of a leader that stays."""
    await node.produce(values=VALUES)
    member = Member(node, topic_id)
    assert told(await member.fetch(0)) == {0: ((0, 2, 1), "0-2")}
    partition = node.core.partitions.get("t", 0)
    for _ in range(2):
        partition.become_leader(partition.leader_epoch + 1)
        assert told(await member.fetch()) == {}
    assert errors(await member.acknowledge((0, 0, 1, ACCEPT), (0, 2, 2, RELEASE))) == {0: None}
    assert told(await member.fetch()) == {0: ((2, 2, 2), "0-2")}


async def test_the_latest_offset_is_put_off_until_a_new_leader_knows_it(node):
    topic_id = await node.create("late")
    await begin_group(node, topic_id, start_offset=-1)
    assert (await set_configs(node, "g", share_auto_offset_reset="latest"))[0] == ErrorCode.NONE
    await node.produce("late", values=VALUES)
    partition = node.core.partitions.get("late", 0)
    followers = lead(FakeReplication(), partition, partition.leader_epoch + 1, 0, (LEADER, FIRST), lambda: 1)
    partition.high_watermark = 1
    member = Member(node, topic_id)
    assert told(await member.fetch(0, max_wait_ms=500)) == {0: ("OFFSET_NOT_AVAILABLE",)}
    partition.high_watermark = followers.epoch_start_offset
    await member.fetch(max_wait_ms=500)
    (shared,) = node.core.share_partitions
    assert shared.window.start_offset == followers.epoch_start_offset == 3


async def test_a_deleted_topic_ends_its_share_partitions(node, topic_id):
    member = Member(node, topic_id)
    await member.fetch(0)
    waiting = asyncio.ensure_future(member.fetch(max_wait_ms=5_000))
    await asyncio.sleep(0)
    await node.ask(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
    assert told(await waiting) == {0: ("NOT_LEADER_OR_FOLLOWER",)}
    assert list(node.core.share_partitions) == []
    assert told(await member.fetch()) == {0: ("UNKNOWN_TOPIC_ID",)}


async def test_switching_share_groups_off_ends_sessions_and_share_partitions(node, topic_id):
    member = Member(node, topic_id)
    await member.fetch(0)
    off = FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)
    assert (await node.ask(ApiKey.UPDATE_FEATURES, UpdateFeaturesRequest(feature_updates=[off]))).error_code == ErrorCode.NONE
    assert (await member.fetch(0)).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert (len(node.core.share_partitions.sessions), list(node.core.share_partitions)) == (0, [])
