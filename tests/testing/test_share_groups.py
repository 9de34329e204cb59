"""Share groups in the test kit, with real members: records in flight, locks that expire at once, faults, the timeline."""

import pytest
from confluent_kafka import AcknowledgeType, KafkaException

from odradek.protocol.records import read_records
from odradek.testing import Broker, NotReached, replay
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
        # Later fetches of a session do not name its partitions.
        later = broker.faults.add(api="ShareFetch", topic=TOPIC, partition=0, close="before", times=1)
        broker.produce(TOPIC, ["d"])
        assert polled(consumer)
        later.wait()
    assert {api: rule.hits for api, rule in rules.items()} == dict.fromkeys(rules, 1)


def acknowledged(consumer, messages, kind=AcknowledgeType.ACCEPT):
    """Acknowledge messages, and return whether the broker has taken it."""
    for message in messages:
        consumer.acknowledge(message, kind)
    return all(error is None for error in consumer.commit_sync(20).values())


def test_a_group_without_members_goes_on_where_it_was_an_hour_later(broker):
    for turn in range(2):
        with share_consumer(broker.bootstrap_servers) as consumer:
            messages = polled(consumer)
            expected = [f"after {turn}"] if turn else ["a", "b", "c"]
            assert [message.value().decode() for message in messages] == expected
            assert acknowledged(consumer, messages)
        broker.clock.advance(hours=1)
        broker.produce(TOPIC, [f"after {turn + 1}"])
    assert broker.groups[GROUP].state == "Empty"


def test_a_test_waits_until_records_are_acknowledged(broker):
    with share_consumer(broker.bootstrap_servers) as consumer:
        first, second, third = polled(consumer)
        assert acknowledged(consumer, [first])
        broker.wait_for(group=GROUP, acknowledged=1)
        consumer.acknowledge(second)
        consumer.acknowledge(third, AcknowledgeType.REJECT)
        consumer.commit_async()
        broker.wait_for(group=GROUP, acknowledged=2, lag=0)
    told = "there is share group 'senders': .* 2 records acknowledged"
    with pytest.raises(NotReached, match=told):
        broker.wait_for(group=GROUP, acknowledged=3, within=0.1)
    with pytest.raises(ValueError, match="acknowledged"):
        broker.wait_for(group=GROUP, acknowledged=-1)


def test_an_acknowledgement_counts_if_it_was_stored_before_the_kill_and_only_then(broker):
    for moment, again in (("after", []), ("before", ["d"])):
        with share_consumer(broker.bootstrap_servers) as consumer:
            messages = polled(consumer)
            fault = broker.faults.add(point="ShareUpdate", restart=moment, times=1)
            assert not acknowledged(consumer, messages)
            fault.wait()
        assert broker.groups[GROUP].acknowledged == 0
        broker.produce(TOPIC, ["d"])
        with share_consumer(broker.bootstrap_servers) as consumer:
            assert [message.value().decode() for message in polled(consumer)] == [*again, "d"]


def test_a_fork_has_the_group_with_its_acknowledgements_and_what_was_acquired_is_available(broker):
    with share_consumer(broker.bootstrap_servers) as consumer:
        first, second, _third = polled(consumer)
        assert acknowledged(consumer, [second])
        snapshot = broker.snapshot()
        with snapshot.fork() as fork, share_consumer(fork.bootstrap_servers) as other:
            messages = polled(other)
            assert [message.offset() for message in messages] == [0, 2]
            assert acknowledged(other, messages)
            fork.wait_for(group=GROUP, lag=0)
        # The original goes on as if there were no fork.
        assert acknowledged(consumer, [first])
        assert [(each.first_offset, each.state) for each in broker.groups[GROUP].in_flight] == [(2, "ACQUIRED")]
    broker.restore(snapshot)
    with share_consumer(broker.bootstrap_servers) as consumer:
        assert [message.offset() for message in polled(consumer)] == [0, 2]


def test_a_replay_of_a_share_group_gets_the_recorded_answers(broker):
    with share_consumer(broker.bootstrap_servers, "member") as consumer:
        first, second, third = polled(consumer)
        assert acknowledged(consumer, [first, second])
        assert acknowledged(consumer, [third], AcknowledgeType.RELEASE)
        assert [message.offset() for message in polled(consumer)] == [2]
    with Broker() as other:
        result = replay(broker.timeline, other.bootstrap_servers)
    assert (result.sent, [str(each) for each in result.differences]) == (len(broker.timeline.exchanges), [])


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


def test_the_timeline_has_the_records_that_a_killed_broker_has_sent(broker):
    with share_consumer(broker.bootstrap_servers, "member") as consumer:
        polled(consumer)
        broker.kill()
    fetched = broker.timeline.where(api="ShareFetch", topic=TOPIC).exchanges
    topics = [topic for each in fetched if each.answer for topic in each.answer.responses]
    sent = [bytes(partition.records) for topic in topics for partition in topic.partitions if partition.records]
    assert any(record.value == b"a" for records in sent for record in read_records(records))
    assert "SHARE_FETCH" in str(broker.timeline)


def test_members_get_their_partitions_soon_unless_the_test_sets_the_interval():
    for configs, interval_ms in (({}, 200), ({"group.share.heartbeat.interval.ms": 6_000}, 6_000)):
        with Broker(topics={TOPIC: 1}, configs=configs, timeline=True) as broker:
            set_group_configs(broker.bootstrap_servers)
            broker.produce(TOPIC, ["a"])
            with share_consumer(broker.bootstrap_servers) as consumer:
                consumer.poll(1.0)
            beats = broker.timeline.where(api="ShareGroupHeartbeat").exchanges
            assert beats[0].answer.heartbeat_interval_ms == interval_ms
