"""``odradek serve --init FILE``: what is missing is made, once; what is wrong stops the start in one line."""

import json

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AclBindingFilter, AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from odradek.cli.init_file import read_init_file
from odradek.cli.serve_options import InvalidInitFile
from tests.cli.test_serve import assert_refused, odradek_serve
from tests.project.documents import DOCS, block_with

WITHIN_S = 20
AUTHORIZER = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}
DOCUMENTED = block_with(DOCS / "operations.md", "yaml", "group_offsets:")


@pytest.fixture
def init_file(tmp_path):
    path = tmp_path / "init.yaml"
    path.write_text(DOCUMENTED)
    (tmp_path / "alice.password").write_text("hunter2\n")
    return path


@pytest.fixture
def start(broker_process, init_file):
    """Start a broker with the file, on one directory."""
    return lambda *more: broker_process(settings=AUTHORIZER, arguments=("--init", str(init_file), *more))


def records(address):
    """Key, value and headers of each record of orders, in its partition."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition("orders", index, 0) for index in range(3)])
    found = []
    while not all(
        consumer.position([TopicPartition("orders", index)])[0].offset
        == consumer.get_watermark_offsets(TopicPartition("orders", index))[1]
        or consumer.get_watermark_offsets(TopicPartition("orders", index))[1] == 0
        for index in range(3)
    ):
        message = consumer.poll(WITHIN_S)
        assert message is not None
        found.append((message.partition(), message.key(), message.value(), message.headers()))
    consumer.close()
    return sorted(found, key=str)


def state(address):
    """All that the file can make, as an admin client sees it."""
    admin = AdminClient({"bootstrap.servers": address})
    topics = admin.list_topics(timeout=WITHIN_S).topics
    resource = ConfigResource("topic", "orders")
    retention = admin.describe_configs([resource])[resource].result(WITHIN_S)["retention.ms"].value
    credentials = admin.describe_user_scram_credentials().result(WITHIN_S)
    acls = admin.describe_acls(AclBindingFilter(2, None, 1, None, None, 1, 1)).result(WITHIN_S)
    [offsets] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("billing")]).values()
    return {
        "topics": {name: len(topic.partitions) for name, topic in topics.items() if not name.startswith("__")},
        "retention": retention,
        "users": {name: [str(info.mechanism) for info in each.scram_credential_infos] for name, each in credentials.items()},
        "acls": sorted((acl.principal, acl.operation.name, acl.name, acl.resource_pattern_type.name) for acl in acls),
        "offsets": {each.partition: each.offset for each in offsets.result(WITHIN_S).topic_partitions},
        "records": records(address),
    }


def test_everything_in_the_documented_file_is_made_and_a_restart_changes_nothing(start):
    broker = start()
    made = state(broker.address)
    assert made["topics"] == {"orders": 3, "payments": 1}
    assert made["retention"] == "604800000"
    assert made["users"] == {"alice": ["ScramMechanism.SCRAM_SHA_256"]}
    assert made["acls"] == [
        ("User:alice", "READ", "orders", "LITERAL"),
        ("User:alice", "WRITE", "orders", "LITERAL"),
    ]
    assert made["offsets"] == {0: 1, 1: 0}
    values = sorted(value for _, _, value, _ in made["records"])
    assert values == [b"text", json.dumps({"total": 12}).encode()]
    broker.restart()
    assert state(broker.address) == made


def test_what_the_user_has_changed_since_stays(start):
    broker = start()
    admin = AdminClient({"bootstrap.servers": broker.address})
    changed = ConfigEntry("retention.ms", "1000000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource("topic", "orders", incremental_configs=[changed])
    admin.incremental_alter_configs([resource])[resource].result(WITHIN_S)
    moved = ConsumerGroupTopicPartitions("billing", [TopicPartition("orders", 0, 0)])
    admin.alter_consumer_group_offsets([moved])["billing"].result(WITHIN_S)
    producer = Producer({"bootstrap.servers": broker.address})
    producer.produce("payments", b"by the user")
    assert producer.flush(WITHIN_S) == 0
    broker.restart()
    found = state(broker.address)
    assert (found["retention"], found["offsets"]) == ("1000000", {0: 0, 1: 0})
    assert len(found["records"]) == 2


def test_rules_of_faults_do_not_meet_what_the_file_makes(start, tmp_path):
    rules = tmp_path / "faults.json"
    rules.write_text('[{"api": ["Produce", "CreateTopics"], "error": "POLICY_VIOLATION"}]')
    assert len(state(start("--faults", str(rules)).address)["records"]) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("topics: {orders: {partitions: three}}", "topics.orders.partitions: 'three' is not allowed: it must be of type integer"),
        ("topics: {orders: 0}", "topics.orders: 0 is not allowed: it must be at least 1"),
        ("topics: {orders: {parts: 1}}", "topics.orders: there is no 'parts'; allowed: partitions, configs, records"),
        ("topic: {}", "the file: there is no 'topic'; allowed: topics, users, acls, quotas, group_offsets"),
        ("[]", "the file: [] is not allowed: it must be of type object"),
        ("users: {alice: {}}", "users.alice: it must have one of password, password_file, not none"),
        (
            "users: {alice: {password: x, mechanisms: [PLAIN]}}",
            "users.alice.mechanisms[0]: 'PLAIN' is not allowed: it must be one of SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        ("acls: [{operations: [READ], topic: a}]", "acls[0]: it must have one of allow, deny, not none"),
        ("acls: [{allow: 'User:a', topic: a}]", "acls[0]: operations is missing"),
        (
            "acls: [{allow: 'User:a', operations: [READ], topic: a, group: b}]",
            "acls[0]: it must have one of topic, group, transactional_id, delegation_token, user, cluster, not topic and group",
        ),
        ("quotas: [{user: a}]", "quotas[0]: it must have one of producer_byte_rate, "),
        (
            "group_offsets: {g: {t: {x: 1}}}",
            "group_offsets.g.t: {'x': 1} is not allowed: its keys must be the numbers of partitions",
        ),
        (
            "group_offsets: {g: {t: {0: soon}}}",
            "group_offsets.g.t.0: 'soon' is not allowed: it must be an offset, earliest or latest",
        ),
        ("topics: {a: 1}\ntopics: {b: 1}", "the key 'topics' is given twice"),
        ("topics: [", "is not the YAML of an init file"),
    ],
)
def test_what_is_wrong_is_named_with_key_value_and_what_is_allowed(tmp_path, text, reason):
    path = tmp_path / "init.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInitFile) as refused:
        read_init_file(path)
    assert str(path) in str(refused.value)
    assert reason in str(refused.value)


def test_an_empty_file_asks_for_nothing(tmp_path):
    path = tmp_path / "init.yaml"
    path.write_text("# later\n")
    assert read_init_file(path) == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("topics: {orders: 0}", "topics.orders: 0 is not allowed"),
        ("topics: {orders: {configs: {retention.hours: 1}}}", "topics.orders: INVALID_CONFIG: "),
        ("topics: {orders: {records: [{value: a, partition: 1}]}}", "topics.orders.records[0].partition: 1 is not allowed"),
        ("topics: {orders: {records: [{value_base64: '?'}]}}", "topics.orders.records[0]: value_base64: '?' is not base64"),
        ("acls: [{allow: 'User:a', operations: [READ], topic: a}]", "acls[0]: SECURITY_DISABLED: "),
        ("group_offsets: {g: {orders: {0: 1}}}", "group_offsets.g.orders: there is no topic 'orders'; name it under topics"),
        ("topics: {a: 1}\ngroup_offsets: {g: {a: {1: 1}}}", "group_offsets.g.a.1: there is no such partition: a has 1"),
        ("users: {alice: {password_file: missing}}", "users.alice.password_file: "),
    ],
)
def test_what_is_wrong_stops_the_start_in_one_line(tmp_path, text, reason):
    path = tmp_path / "init.yaml"
    path.write_text(text)
    assert_refused(odradek_serve("--port", 0, "--in-memory", "--init", path), f"{path}: {reason}")


def test_a_file_that_is_missing_is_named(tmp_path):
    assert_refused(odradek_serve("--port", 0, "--in-memory", "--init", tmp_path / "none.yaml"), "none.yaml")
