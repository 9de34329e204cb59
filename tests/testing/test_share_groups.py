"""Share groups in the test kit, with real members: records in flight, locks that expire at once, faults, the timeline."""

import pytest
from confluent_kafka import AcknowledgeType, KafkaException

from odradek.testing import Broker
from tests.share_consumers import GROUP, TOPIC, polled, set_group_configs, share_consumer

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def broker():
    with Broker(topics={TOPIC: 1}, timeline=True) as broker:
        set_group_configs(broker.bootstrap_servers)
        broker.produce(TOPIC, ["a", "b", "c"])
        yield broker


def in_flight(broker):
    """Offsets, state, delivery count and holder of all records in flight."""
    found = broker.groups[GROUP].in_flight
    assert {(each.topic, each.partition) for each in found} <= {(TOPIC, 0)}
    return [(each.first_offset, each.last_offset, each.state, each.delivery_count, each.client_id) for each in found]


def test_records_in_flight_have_their_holder_and_locks_expire_when_the_clock_is_advanced(broker):
    with share_consumer(broker.bootstrap_servers, "slow") as slow:
        first, second, third = polled(slow)
        assert in_flight(broker) == [(0, 2, "ACQUIRED", 1, "slow")]
        [held] = broker.groups[GROUP].in_flight
        [member] = broker.groups[GROUP].members
        assert held.member_id == member.member_id
        assert 0 < held.lock_left_ms <= 30_000
        assert f"{TOPIC}-0 0-2 ACQUIRED by {member.member_id} for " in str(broker.groups[GROUP])
        slow.acknowledge(second)
        slow.acknowledge(third, AcknowledgeType.RELEASE)
        slow.commit_sync()
        assert in_flight(broker) == [(0, 0, "ACQUIRED", 1, "slow"), (1, 1, "ACKNOWLEDGED", 1, None), (2, 2, "AVAILABLE", 1, None)]
        broker.clock.advance(seconds=29)
        assert in_flight(broker)[0] == (0, 0, "ACQUIRED", 1, "slow")
        broker.clock.advance(seconds=1)
        assert in_flight(broker)[0] == (0, 0, "AVAILABLE", 1, None)
        slow.acknowledge(first)
        [error] = slow.commit_sync().values()
        assert "INVALID_RECORD_STATE" in str(error)
        with share_consumer(broker.bootstrap_servers, "quick") as quick:
            assert [message.offset() for message in polled(quick)] == [0, 2]
            assert in_flight(broker)[0] == (0, 0, "ACQUIRED", 2, "quick")


def test_a_fault_rule_meets_share_groups_by_their_apis_and_their_topics(broker):
    rules = {
        api: broker.faults.add(api=api, error=error, times=1, **names)
        for api, error, names in (
            ("ShareGroupHeartbeat", "COORDINATOR_LOAD_IN_PROGRESS", {"group": GROUP}),
            ("ShareFetch", "UNKNOWN_SERVER_ERROR", {"topic": TOPIC, "partition": 0}),
            ("ShareAcknowledge", "INVALID_RECORD_STATE", {"group": GROUP, "topic": TOPIC}),
        )
    }
    with share_consumer(broker.bootstrap_servers) as consumer:
        [*messages] = polled(consumer)
        for message in messages:
            consumer.acknowledge(message)
        [error] = consumer.commit_sync().values()
        assert isinstance(error, KafkaException)
        assert "INVALID_RECORD_STATE" in str(error)
    assert {api: rule.hits for api, rule in rules.items()} == dict.fromkeys(rules, 1)


def test_the_timeline_has_the_requests_and_the_decisions_of_a_share_group(broker):
    with share_consumer(broker.bootstrap_servers, "member") as consumer:
        for message in polled(consumer):
            consumer.acknowledge(message)
        consumer.commit_sync()
    timeline = broker.timeline.where(client_id="member", group=GROUP)
    apis = {each.api.name for each in timeline.exchanges}
    assert {"SHARE_GROUP_HEARTBEAT", "SHARE_FETCH", "SHARE_ACKNOWLEDGE"} <= apis
    [acknowledged] = broker.timeline.where(api="ShareAcknowledge", topic=TOPIC).exchanges
    assert acknowledged.request.topics[0].partitions[0].acknowledgement_batches[0].last_offset == 2
    decided = {(each.what, each.about["group"]) for each in broker.timeline.decisions}
    assert decided == {("a target assignment was computed", GROUP), ("a member was removed", GROUP)}


def test_members_get_their_partitions_soon_unless_the_test_sets_the_interval():
    for configs, interval_ms in (({}, 200), ({"group.share.heartbeat.interval.ms": 6_000}, 6_000)):
        with Broker(topics={TOPIC: 1}, configs=configs, timeline=True) as broker:
            set_group_configs(broker.bootstrap_servers)
            broker.produce(TOPIC, ["a"])
            with share_consumer(broker.bootstrap_servers) as consumer:
                consumer.poll(1.0)
            beats = broker.timeline.where(api="ShareGroupHeartbeat").exchanges
            assert beats[0].answer.heartbeat_interval_ms == interval_ms
