"""Brokers of odradek's and of Apache Kafka's under a controller of Kafka's: one cluster, by the words of clients and the bytes of
logs."""

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import ConfigResource

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.hashing import partition_for
from odradek.protocol.records import Record, build_batch
from tests.campaigns.mixed_clusters.cluster import DEADLINE_S, MixedCluster
from tests.raw_client import RawClient

pytestmark = [pytest.mark.xdist_group("kafka-clusters"), pytest.mark.timeout(400)]

KAFKA, FIRST, SECOND, LEAVING = 5, 11, 12, 13
EVERY = (KAFKA, FIRST, SECOND)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = MixedCluster(tmp_path_factory.mktemp("member"), kafka=[KAFKA], odradek=[FIRST, SECOND], spare=[LEAVING])
    try:
        made.begin()
        made.create_internal_topics()
        yield made
        are_alike_when_they_have_stopped(made)
    finally:
        made.close()


def are_alike_when_they_have_stopped(cluster):
    """All replicas of every topic that these tests have made, and of the coordinators' own. Tests come in any order."""
    cluster.settle_and_stop()
    found = cluster.compare()
    print(found)
    assert found.differences == []


ROUND = [[FIRST, SECOND, KAFKA], [SECOND, KAFKA, FIRST], [KAFKA, FIRST, SECOND]]


def values_of(name, count):
    return [f"{name}-{number:05}".encode() for number in range(count)]


def test_what_all_replicas_acknowledge_is_on_each_of_them_byte_for_byte(cluster):
    cluster.create("even", ROUND, min_insync_replicas="3")
    values = values_of("even", 600)
    cluster.produce("even", values, 3, **{"enable.idempotence": True, "compression.type": "lz4"})
    assert cluster.consume("even", 3, 600) == values
    cluster.until(lambda: cluster.replicas_agree("even", 3))
    assert all(cluster.replica(KAFKA, "even", index) for index in range(3))


def test_a_broker_that_is_killed_is_led_past_and_has_all_of_it_when_it_is_back(cluster):
    cluster.create("killed", ROUND, min_insync_replicas="2")
    values = values_of("killed", 900)
    cluster.produce("killed", values[:300], 3)
    cluster.odradek.kill9(FIRST)
    cluster.until(lambda: FIRST not in cluster.leaders("killed"))
    cluster.produce("killed", values[300:600], 3)
    cluster.odradek.start(FIRST)
    cluster.until(lambda: cluster.in_sync("killed") == [sorted(EVERY)] * 3)
    cluster.produce("killed", values[600:], 3)
    assert cluster.consume("killed", 3, 900) == values
    cluster.until(lambda: cluster.replicas_agree("killed", 3))


def test_kafkas_broker_follows_and_comes_back_too(cluster):
    cluster.create("kafka-killed", ROUND, min_insync_replicas="2")
    values = values_of("kafka-killed", 600)
    cluster.produce("kafka-killed", values[:300], 3)
    cluster.kafka.kill9(KAFKA)
    cluster.until(lambda: KAFKA not in cluster.leaders("kafka-killed"))
    cluster.produce("kafka-killed", values[300:], 3)
    cluster.kafka.start(KAFKA)
    cluster.until(lambda: cluster.in_sync("kafka-killed") == [sorted(EVERY)] * 3)
    assert cluster.consume("kafka-killed", 3, 600) == values
    cluster.until(lambda: cluster.replicas_agree("kafka-killed", 3))


def test_a_broker_that_stops_has_its_leaderships_moved_away_before(cluster):
    cluster.create("stopped", ROUND)
    values = values_of("stopped", 300)
    cluster.produce("stopped", values[:150], 3)
    assert cluster.odradek.stop(SECOND) == 0
    # No waiting: nobody has to notice that it is gone.
    assert SECOND not in cluster.leaders("stopped")
    cluster.produce("stopped", values[150:], 3)
    cluster.odradek.start(SECOND)
    # Its last stop was clean, so the controller need not think that it has lost anything.
    cluster.until(lambda: cluster.in_sync("stopped") == [sorted(EVERY)] * 3)
    cluster.until(lambda: cluster.replicas_agree("stopped", 3))
    assert cluster.consume("stopped", 3, 300) == values


def committed(cluster, group, topic):
    consumer = Consumer({"bootstrap.servers": cluster.servers, "group.id": group})
    try:
        [found] = consumer.committed([TopicPartition(topic, 0)], timeout=DEADLINE_S)
    except KafkaException:
        return None
    else:
        return found.offset
    finally:
        consumer.close()


def test_a_groups_offsets_are_at_the_next_coordinator_when_its_broker_is_killed(cluster):
    cluster.create("grouped", [[KAFKA, FIRST, SECOND]])
    groups = [f"group-{number}" for number in range(6)]
    for number, group in enumerate(groups):
        consumer = Consumer({"bootstrap.servers": cluster.servers, "group.id": group})
        consumer.commit(offsets=[TopicPartition("grouped", 0, number + 1)], asynchronous=False)
        consumer.close()
    cluster.prefer("__consumer_offsets", 3)
    cluster.odradek.kill9(FIRST)
    cluster.until(lambda: not {FIRST, -1} & set(cluster.leaders("__consumer_offsets")))
    cluster.until(lambda: [committed(cluster, group, "grouped") for group in groups] == list(range(1, 7)))
    cluster.odradek.start(FIRST)


def transactional(cluster, transactional_id):
    producer = Producer({"bootstrap.servers": cluster.servers, "transactional.id": transactional_id, "linger.ms": "0"})
    producer.init_transactions(DEADLINE_S)
    return producer


def coordinator_of(cluster, transactional_id):
    """The broker that leads the id's partition of `__transaction_state`."""
    return cluster.leaders("__transaction_state")[partition_for(transactional_id, 3)]


def ids_of_each_coordinator(cluster):
    """A transactional id that each broker coordinates."""
    transactional(cluster, "first")
    cluster.prefer("__transaction_state", 3)
    found = {}
    for number in range(40):
        found.setdefault(coordinator_of(cluster, f"id-{number}"), f"id-{number}")
    return found


def test_transactions_end_on_the_partitions_of_all_brokers_whoever_coordinates_them(cluster):
    cluster.create("transacted", ROUND, min_insync_replicas="2")
    reader = Consumer({"bootstrap.servers": cluster.servers, "group.id": "transacted"})
    expected = []
    for coordinator, transactional_id in ids_of_each_coordinator(cluster).items():
        producer = transactional(cluster, transactional_id)
        for turn in range(6):
            is_kept = turn % 3 != 2
            producer.begin_transaction()
            for partition in range(3):
                value = f"{coordinator}-{turn}-{partition}".encode()
                producer.produce("transacted", value, partition=partition)
                expected += [value] if is_kept else []
            if not is_kept:
                # What has not been sent is not aborted by the brokers.
                assert producer.flush(DEADLINE_S) == 0
                producer.abort_transaction(DEADLINE_S)
                continue
            offsets = [TopicPartition("transacted", 0, turn + 1)]
            producer.send_offsets_to_transaction(offsets, reader.consumer_group_metadata(), DEADLINE_S)
            producer.commit_transaction(DEADLINE_S)
    # Nothing is left open: a read of what is committed comes to the end.
    assert cluster.consume("transacted", 3, len(expected)) == sorted(expected)
    assert committed(cluster, "transacted", "transacted") == 5
    cluster.until(lambda: cluster.replicas_agree("transacted", 3))
    reader.close()


def test_a_transaction_is_ended_by_the_next_coordinator_when_its_broker_is_killed(cluster):
    cluster.create("handed-on", ROUND, min_insync_replicas="2")
    transactional_id = ids_of_each_coordinator(cluster)[FIRST]
    producer = transactional(cluster, transactional_id)
    producer.begin_transaction()
    for partition in range(3):
        producer.produce("handed-on", b"kept", partition=partition)
    producer.flush(DEADLINE_S)
    cluster.odradek.kill9(FIRST)
    producer.commit_transaction(DEADLINE_S)
    producer.begin_transaction()
    producer.produce("handed-on", b"more", partition=0)
    producer.commit_transaction(DEADLINE_S)
    assert cluster.consume("handed-on", 3, 4) == [b"kept"] * 3 + [b"more"]
    cluster.odradek.start(FIRST)
    cluster.until(lambda: cluster.in_sync("handed-on") == [sorted(EVERY)] * 3)
    cluster.until(lambda: cluster.replicas_agree("handed-on", 3))


def test_too_few_replicas_refuse_what_all_are_to_have(cluster):
    cluster.create("few", [[FIRST, SECOND]], min_insync_replicas="2")
    cluster.produce("few", values_of("few", 10), 1)
    cluster.odradek.kill9(SECOND)
    cluster.until(lambda: cluster.in_sync("few") == [[FIRST]])
    producer = Producer({"bootstrap.servers": cluster.servers, "acks": "all", "message.timeout.ms": "1500", "retries": "0"})
    failures = []
    producer.produce("few", b"refused", callback=lambda error, _: failures.append(error.name()))
    producer.flush(10)
    assert failures == ["NOT_ENOUGH_REPLICAS"]
    cluster.odradek.start(SECOND)
    cluster.until(lambda: cluster.in_sync("few") == [[FIRST, SECOND]])
    cluster.produce("few", [b"taken"], 1)


def test_partitions_move_to_another_broker_and_away(cluster):
    """A replica comes to a broker and leaves another, and the bytes come with it."""
    cluster.create("moved", [[KAFKA]])
    values = values_of("moved", 200)
    cluster.produce("moved", values, 1)
    assert cluster.reassign("moved", [FIRST, SECOND]) == 0
    cluster.until(lambda: cluster.in_sync("moved") == [[FIRST, SECOND]] and not (cluster.kafka.data(KAFKA) / "moved-0").exists())
    assert cluster.replica(FIRST, "moved", 0) == cluster.replica(SECOND, "moved", 0)
    assert cluster.reassign("moved", [SECOND]) == 0
    cluster.until(lambda: cluster.leaders("moved") == [SECOND] and not (cluster.odradek.data(FIRST) / "moved-0").exists())
    assert cluster.consume("moved", 1, 200) == values


def test_a_broker_without_the_leader_says_who_leads(cluster):
    """Of partitions that it has no replica of, too."""
    cluster.create("elsewhere", [[FIRST]])
    batch = build_batch([Record(value=b"v")])
    with RawClient("127.0.0.1", cluster.odradek.ports[SECOND]) as client:
        data = [{"name": "elsewhere", "partition_data": [{"index": 0, "records": bytes(batch)}]}]
        produced = client.call(ApiKey.PRODUCE, 12, acks=-1, timeout_ms=1000, topic_data=data)
    [partition] = produced.responses[0].partition_responses
    assert (partition.error_code, partition.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, FIRST)
    assert [(node.node_id, node.port) for node in produced.node_endpoints] == [(FIRST, cluster.odradek.ports[FIRST])]


@pytest.mark.parametrize(("ahead", "behind"), [(FIRST, KAFKA), (KAFKA, FIRST)])
def test_a_log_that_diverges_from_its_new_leaders_is_cut_off_where_the_epochs_say(cluster, ahead, behind):
    """One replica writes alone and dies; the other one, which lacks that, is elected all the same, and writes something else."""
    topic = f"diverging-{ahead}-{behind}"
    cluster.create(topic, [[ahead, behind]])
    cluster.produce(topic, values_of("both", 20), 1)
    cluster.until(lambda: cluster.replica(ahead, topic, 0) == cluster.replica(behind, topic, 0))
    cluster.kill9(behind)
    cluster.until(lambda: cluster.in_sync(topic) == [[ahead]])
    cluster.produce(topic, values_of("lost", 7), 1)
    cluster.kill9(ahead)
    cluster.until(lambda: cluster.leaders(topic) == [-1])
    cluster.start(behind)
    cluster.until(lambda: cluster.elects_unclean(topic, behind))
    cluster.produce(topic, values_of("kept", 12), 1)
    cluster.start(ahead)
    cluster.until(lambda: cluster.in_sync(topic) == [sorted([ahead, behind])])
    cluster.until(lambda: cluster.replica(ahead, topic, 0) == cluster.replica(behind, topic, 0))
    assert cluster.consume(topic, 1, 32) == sorted(values_of("both", 20) + values_of("kept", 12))


def test_configs_are_changed_by_the_controller_and_kept_by_the_broker(cluster):
    cluster.create("configured", [[FIRST]])
    cluster.configure(ConfigResource.Type.TOPIC, "configured", retention_ms="123456")

    def value():
        asked = ConfigResource(ConfigResource.Type.TOPIC, "configured")
        return cluster.admin.describe_configs([asked])[asked].result(DEADLINE_S)["retention.ms"].value

    cluster.until(lambda: value() == "123456")


def test_a_deleted_topics_directories_go(cluster):
    cluster.create("deleted", ROUND)
    cluster.produce("deleted", values_of("deleted", 30), 3)
    cluster.admin.delete_topics(["deleted"])["deleted"].result(DEADLINE_S)
    cluster.until(lambda: not [path for node_id in (FIRST, SECOND) for path in cluster.odradek.data(node_id).glob("deleted-?")])


def preferred(cluster, leader, topic, partition, rack):
    """The replica that a consumer in ``rack`` is to read from, by its leader's word; and where that is, by an empty answer."""
    asked = [{"partition": partition, "fetch_offset": 0, "partition_max_bytes": 1 << 20, "log_start_offset": -1}]
    with RawClient("127.0.0.1", cluster.ports[leader]) as client:
        topics = [{"topic": topic, "partitions": asked}]
        fetched = client.call(
            ApiKey.FETCH,
            12,
            replica_id=-1,
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=topics,
            rack_id=rack,
        )
    [found] = fetched.responses[0].partitions
    assert found.error_code == ErrorCode.NONE
    return found.preferred_read_replica, bool(found.records)


def test_a_consumer_reads_from_the_replica_in_its_rack_whoever_leads(cluster):
    cluster.create("racks", ROUND)
    values = values_of("racks", 90)
    cluster.produce("racks", values, 3)
    for partition, (leader, *followers) in enumerate(ROUND):
        for follower in followers:
            cluster.until(
                lambda at=(leader, partition, follower): (
                    preferred(cluster, at[0], "racks", at[1], f"rack-{at[2]}") == (at[2], False)
                )
            )
            # Followers answer themselves.
            cluster.until(
                lambda at=(follower, partition): preferred(cluster, at[0], "racks", at[1], f"rack-{at[0]}") == (-1, True)
            )
        assert preferred(cluster, leader, "racks", partition, f"rack-{leader}") == (-1, True)
        assert preferred(cluster, leader, "racks", partition, "elsewhere") == (-1, True)
    for node_id in EVERY:
        assert cluster.consume("racks", 3, 90, **{"client.rack": f"rack-{node_id}"}) == values


@pytest.mark.parametrize(("side", "leader", "added"), [("leader", FIRST, KAFKA), ("follower", KAFKA, SECOND)])
def test_a_partition_that_moves_is_throttled_and_what_is_in_sync_is_not(cluster, side, leader, added):
    topic = f"throttled-{side}-{leader}-{added}"
    cluster.create(topic, [[leader]])
    cluster.produce(topic, [bytes([number]) * 100_000 for number in range(30)], 1)
    throttled = leader if side == "leader" else added
    cluster.configure(ConfigResource.Type.TOPIC, topic, **{f"{side}_replication_throttled_replicas": f"0:{throttled}"})
    cluster.configure(ConfigResource.Type.BROKER, str(throttled), **{f"{side}_replication_throttled_rate": "1000"})
    cluster.until(lambda: is_configured(cluster, throttled, f"{side}.replication.throttled.rate"))
    try:
        assert cluster.reassign(topic, [leader, added]) == 0
        cluster.until(lambda: len(cluster.replica(added, topic, 0)) > 0)
        # It has got what one fetch brings, and more than a second's worth: now it waits, and the leader goes on.
        cluster.produce(topic, values_of(topic, 10), 1)
        assert cluster.in_sync(topic) == [[leader]]
    finally:
        cluster.configure(ConfigResource.Type.BROKER, str(throttled), **{f"{side}_replication_throttled_rate": None})
    cluster.until(lambda: cluster.in_sync(topic) == [sorted([leader, added])])
    assert cluster.replica(leader, topic, 0) == cluster.replica(added, topic, 0)


def is_configured(cluster, node_id, name):
    resource = ConfigResource(ConfigResource.Type.BROKER, str(node_id))
    return name in cluster.admin.describe_configs([resource])[resource].result(DEADLINE_S)


def test_nothing_was_a_fault(cluster):
    for node_id in (FIRST, SECOND):
        assert "Traceback" not in cluster.odradek.log(node_id)
        assert '"level": "error"' not in cluster.odradek.log(node_id)


@pytest.mark.parametrize("leader", [FIRST, KAFKA])
def test_deleted_records_do_not_come_back_with_the_next_leader(cluster, leader):
    topic = f"shortened-{leader}"
    cluster.create(topic, [[leader, *(node_id for node_id in EVERY if node_id != leader)]])
    cluster.produce(topic, values_of(topic, 30), 1)
    assert cluster.delete_records(topic, 20) == 20
    # All three have said so to their leader, which has waited for them.
    for node_id in EVERY:
        assert earliest(cluster, node_id, topic) == 20


def earliest(cluster, node_id, topic):
    """The first offset that a replica has, by its own word."""
    asked = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -2}]}]
    with RawClient("127.0.0.1", cluster.ports[node_id]) as client:
        [found] = client.call(ApiKey.LIST_OFFSETS, 7, replica_id=-2, isolation_level=0, topics=asked).topics[0].partitions
    assert found.error_code == ErrorCode.NONE
    return found.offset


def test_a_broker_that_is_gone_for_good_is_unregistered_by_way_of_another(cluster):
    cluster.odradek.start(LEAVING)
    # The other tests' client does not hear of it, who might take it for the controller, and wait for it.
    assert cluster.odradek.stop(LEAVING) == 0
    with RawClient("127.0.0.1", cluster.ports[FIRST]) as client:
        assert client.call(ApiKey.UNREGISTER_BROKER, 0, broker_id=LEAVING).error_code == ErrorCode.NONE
        assert client.call(ApiKey.UNREGISTER_BROKER, 0, broker_id=LEAVING).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED

        def registered():
            described = client.call(ApiKey.DESCRIBE_CLUSTER, 2, endpoint_type=1, include_fenced_brokers=True)
            return {broker.broker_id for broker in described.brokers}

        cluster.until(lambda: registered() == set(EVERY))
