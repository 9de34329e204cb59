"""Decisions on overrides. The codes are those a Kafka 4.3.1 broker gave for the same requests."""

import pytest

from odradek.common.config.dynamic import ResourceType
from odradek.controller.metadata.alterations import APPEND, DELETE, SET, SUBTRACT, Alteration, Operation, decide
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply
from tests.cases import each_case
from tests.common.config.doubles import alter_resources, make_view

TOPIC = ResourceType.TOPIC
BROKER = ResourceType.BROKER


def alter(view, resource_type, name, *operations, replaces=False):
    return decide(view, Alteration(resource_type, name, [Operation(*operation) for operation in operations], replaces))


def refusal_of(view, resource_type, name, *operations, replaces=False):
    with pytest.raises(KafkaError) as refusal:
        alter(view, resource_type, name, *operations, replaces=replaces)
    return refusal.value


def test_a_config_that_is_set_becomes_a_record_with_the_text_as_it_came():
    changes = alter(make_view(), TOPIC, "events", ("retention.ms", SET, " 5000 "), ("preallocate", SET, "TRUE"))
    assert changes == [(2, "events", "retention.ms", " 5000 "), (2, "events", "preallocate", "TRUE")]


def test_a_config_that_is_deleted_becomes_a_record_without_value():
    view = make_view(overrides={(2, "events"): {"retention.ms": "5"}})
    assert alter(view, TOPIC, "events", ("retention.ms", DELETE, None)) == [(2, "events", "retention.ms", None)]


@pytest.mark.parametrize("operation", [("retention.ms", SET, "5"), ("no.such.config", DELETE, None), ("flush.ms", DELETE, "1")])
def test_what_is_so_already_needs_no_record(operation):
    view = make_view(overrides={(2, "events"): {"retention.ms": "5"}})
    assert alter(view, TOPIC, "events", operation) == []


@each_case(
    ("stored", "operation", "value"),
    [
        ({}, ("cleanup.policy", APPEND, "compact"), "delete,compact"),
        ({"cleanup.policy": "compact"}, ("cleanup.policy", APPEND, "delete,compact"), "compact,delete"),
        ({"cleanup.policy": "compact,delete"}, ("cleanup.policy", SUBTRACT, "delete"), "compact"),
        ({"cleanup.policy": "compact"}, ("cleanup.policy", SUBTRACT, "compact,delete"), ""),
        ({}, ("cleanup.policy", SUBTRACT, "delete"), ""),
    ],
)
def test_a_list_is_appended_to_and_subtracted_from(stored, operation, value):
    view = make_view(overrides={(2, "events"): stored})
    assert alter(view, TOPIC, "events", operation) == [(2, "events", "cleanup.policy", value)]


def test_replacing_overrides_removes_those_that_are_not_named():
    view = make_view(overrides={(2, "events"): {"retention.ms": "5", "flush.ms": "6"}})
    changes = alter(view, TOPIC, "events", ("retention.ms", SET, "7"), replaces=True)
    assert changes == [(2, "events", "retention.ms", "7"), (2, "events", "flush.ms", None)]


@each_case(
    ("operation", "code"),
    [
        (("retention.ms", SET, "abc"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SET, "-2"), ErrorCode.INVALID_CONFIG),
        (("segment.bytes", SET, "9999999999"), ErrorCode.INVALID_CONFIG),
        (("compression.type", SET, "gz"), ErrorCode.INVALID_CONFIG),
        (("retention.mss", SET, "1"), ErrorCode.INVALID_CONFIG),
        (("log.retention.ms", SET, "1"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SUBTRACT, "1"), ErrorCode.INVALID_CONFIG),
        (("no.such.config", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (("remote.storage.enable", SET, "true"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (("cleanup.policy", APPEND, None), ErrorCode.INVALID_REQUEST),
        (("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_topic_refuses_what_it_cannot_be(operation, code):
    assert refusal_of(make_view(), TOPIC, "events", operation).code is code


@each_case(
    ("topic", "value", "code"),
    [
        ("nowhere", "1", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nowhere", "x", ErrorCode.INVALID_CONFIG),
        ("", "1", ErrorCode.INVALID_REQUEST),
        ("a b", "1", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_a_topic_that_is_not_there_cannot_be_altered(topic, value, code):
    assert refusal_of(make_view(), TOPIC, topic, ("retention.ms", SET, value)).code is code


def test_a_key_may_be_named_once():
    operation = ("retention.ms", SET, "1")
    assert refusal_of(make_view(), TOPIC, "events", operation, operation).code is ErrorCode.INVALID_REQUEST


def test_two_configs_that_do_not_go_together_are_refused_even_one_after_the_other():
    view = make_view(overrides={(2, "events"): {"max.compaction.lag.ms": "10"}})
    assert refusal_of(view, TOPIC, "events", ("min.compaction.lag.ms", SET, "100")).code is ErrorCode.INVALID_CONFIG


@each_case("broker", ["1", ""])
@each_case(
    "operation",
    [
        ("log.retention.ms", SET, "5"),
        ("max.connections", SET, "50"),
        ("a.plugins.own", SET, "q"),
        ("num.io.threads", SET, "9"),
        ("log.cleanup.policy", APPEND, "compact"),
        ("listener.name.plaintext.max.connections", SET, "7"),
    ],
)
def test_a_dynamic_config_is_set_on_this_broker_and_on_the_cluster(broker, operation):
    (change,) = alter(make_view(), BROKER, broker, operation)
    assert change[:3] == (4, broker, operation[0])


@each_case("broker", ["1", ""])
@each_case(
    ("operation", "code"),
    [
        (("num.partitions", SET, "5"), ErrorCode.INVALID_REQUEST),
        (("node.id", SET, "1"), ErrorCode.INVALID_REQUEST),
        (("log.retention.hours", SET, "5"), ErrorCode.INVALID_REQUEST),
        (("process.roles", SET, "broker"), ErrorCode.INVALID_REQUEST),
        (("ssl.keystore.password", SET, "secret"), ErrorCode.INVALID_REQUEST),
        (("log.retention.ms", SET, "x"), ErrorCode.INVALID_REQUEST),
        (("log.segment.bytes", SET, "1"), ErrorCode.INVALID_REQUEST),
        (("log.roll.ms", SET, "0"), ErrorCode.INVALID_REQUEST),
        (("max.connections.per.ip", SET, "0"), ErrorCode.INVALID_REQUEST),
        (("listener.name.plaintext.max.connections", SET, "x"), ErrorCode.INVALID_REQUEST),
        (("log.retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (("log.retention.ms", 7, "1"), ErrorCode.INVALID_REQUEST),
        (("log.retention.ms", APPEND, "4"), ErrorCode.INVALID_CONFIG),
        (("a.plugins.own", APPEND, "4"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_broker_refuses_what_it_cannot_be_while_it_runs(broker, operation, code):
    assert refusal_of(make_view(), BROKER, broker, operation).code is code


def test_a_config_for_one_broker_cannot_be_set_on_the_cluster():
    operation = ("listener.name.plaintext.ssl.keystore.password", SET, "x")
    assert alter(make_view(), BROKER, "1", operation)
    assert refusal_of(make_view(), BROKER, "", operation).code is ErrorCode.INVALID_REQUEST


def test_a_config_that_cannot_change_may_still_be_deleted():
    assert alter(make_view(), BROKER, "1", ("num.partitions", DELETE, None)) == [(BROKER, "1", "num.partitions", None)]


@pytest.mark.parametrize(("resource", "name"), [(BROKER, ""), (BROKER, "1"), (TOPIC, "events")])
def test_a_broker_is_told_again_what_it_has_and_a_topic_is_not(resource, name):
    view = make_view(overrides={(resource, name): {"min.insync.replicas": "2", "retention.ms": "5"}})
    found = alter(view, resource, name, ("min.insync.replicas", SET, "2"))
    assert found == ([(BROKER, name, "min.insync.replicas", "2")] if resource == BROKER else [])


def test_the_clusters_override_is_checked_together_with_this_brokers():
    view = make_view(overrides={(4, "1"): {"max.connections.per.ip.overrides": "127.0.0.1:5"}})
    assert alter(view, BROKER, "", ("max.connections.per.ip", SET, "0"))


@pytest.mark.parametrize("broker", ["2", "x", "-1"])
def test_another_broker_cannot_be_altered(broker):
    assert refusal_of(make_view(), BROKER, broker, ("log.retention.ms", SET, "5")).code is ErrorCode.INVALID_REQUEST


@each_case(
    ("broker", "operation", "code"),
    [
        ("1", ("root", SET, "INFO"), ErrorCode.INVALID_CONFIG),
        ("1", ("root", DELETE, None), ErrorCode.INVALID_CONFIG),
        ("1", ("root", APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
        ("2", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ("", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_there_is_no_logger_to_set(broker, operation, code):
    assert refusal_of(make_view(), ResourceType.BROKER_LOGGER, broker, operation).code is code


def test_loggers_cannot_be_replaced():
    refusal = refusal_of(make_view(), ResourceType.BROKER_LOGGER, "1", ("root", SET, "INFO"), replaces=True)
    assert refusal.code is ErrorCode.INVALID_REQUEST


def test_a_subscription_to_client_metrics_is_set_and_loses_its_configs():
    view = make_view(overrides={(ResourceType.CLIENT_METRICS, "s"): {"interval.ms": "500", "match": "client_id=a"}})
    changes = alter(view, ResourceType.CLIENT_METRICS, "s", ("interval.ms", SET, "600"), ("match", DELETE, None))
    assert sorted(changes, key=str) == [(16, "s", "interval.ms", "600"), (16, "s", "match", None)]


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
def test_nothing_is_appended_to_the_configs_of_client_metrics_as_in_kafka(operation):
    refusal = refusal_of(make_view(), ResourceType.CLIENT_METRICS, "s", ("metrics", operation, "a"))
    assert refusal.code is ErrorCode.INVALID_CONFIG


@each_case("resource_type", [0, 1, 3, 64, 99])
def test_other_resources_have_no_configs(resource_type):
    assert refusal_of(make_view(), resource_type, "x", ("interval.ms", SET, "5")).code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("kind", "name", "removed", "operation"),
    [
        (TOPIC, "events", "message.format.version", ("retention.ms", SET, "5")),
        (ResourceType.GROUP, "g", "a.config.of.yesterday", ("consumer.session.timeout.ms", SET, "46000")),
        (ResourceType.CLIENT_METRICS, "m", "a.config.of.yesterday", ("interval.ms", SET, "500")),
    ],
)
def test_a_stored_config_that_there_is_no_more_stands_in_no_changes_way(kind, name, removed, operation):
    view = make_view(overrides={(int(kind), name): {removed: "2.8"}})
    assert alter(view, kind, name, operation) == [(int(kind), name, operation[0], operation[2])]
    gone = (int(kind), name, removed, None)
    assert alter(view, kind, name, (removed, DELETE, None)) == [gone]
    assert set(alter(view, kind, name, operation, replaces=True)) == {(int(kind), name, operation[0], operation[2]), gone}
    assert refusal_of(view, kind, name, (removed, SET, "2.7")).code in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)


def completed(outcome):
    reply = Reply()
    reply.complete(outcome)
    return reply


def test_the_answers_come_when_the_changes_are_committed():
    reply = Reply()
    answers = alter_resources(make_view(topics=["events"]), [setting("events", "1")], lambda _: reply)
    assert not answers.done
    reply.complete(None)
    assert [code for code, _ in answers.response] == [ErrorCode.NONE]


def setting(topic, value):
    return Alteration(TOPIC, topic, [Operation("retention.ms", SET, value)])


def test_resources_fail_alone_and_the_others_are_committed_at_once():
    committed = []

    def commit(changes):
        committed.append(changes)
        return completed(None)

    alterations = [setting("events", "1"), setting("nowhere", "1"), setting("clicks", "2")]
    answers = alter_resources(make_view(topics=["events", "clicks"]), alterations, commit).response
    assert [code for code, _ in answers] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
    assert committed == [[(2, "events", "retention.ms", "1"), (2, "clicks", "retention.ms", "2")]]


def test_a_resource_named_twice_is_altered_not_at_all():
    committed = []
    answers = alter_resources(make_view(), [setting("events", "1"), setting("events", "1")], committed.append).response
    assert [code for code, _ in answers] == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]
    assert committed == []


def test_a_log_that_fails_is_the_answer_to_all_that_would_have_been_done():
    def fail(_changes):
        return completed(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "disk full"))

    answers = alter_resources(make_view(), [setting("events", "1"), setting("nowhere", "1")], fail).response
    assert [code for code, _ in answers] == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


CLUSTER_MIN_ISR = {(4, ""): {"min.insync.replicas": "1", "max.connections": "5"}}


@each_case(
    ("broker", "operation", "replaces"),
    [
        ("", ("min.insync.replicas", DELETE, None), False),
        ("", ("max.connections", SET, "5"), True),
        ("1", ("min.insync.replicas", SET, "2"), False),
        ("1", ("min.insync.replicas", DELETE, None), False),
    ],
)
def test_with_eligible_leader_replicas_the_clusters_min_isr_stays_and_is_the_only_one(broker, operation, replaces):
    view = make_view(overrides=CLUSTER_MIN_ISR, has_elr=True)
    assert refusal_of(view, BROKER, broker, operation, replaces=replaces).code == ErrorCode.INVALID_CONFIG
    alter(make_view(overrides=CLUSTER_MIN_ISR), BROKER, broker, operation, replaces=replaces)


def test_with_eligible_leader_replicas_the_clusters_min_isr_may_be_changed():
    view = make_view(overrides=CLUSTER_MIN_ISR, has_elr=True)
    assert alter(view, BROKER, "", ("min.insync.replicas", SET, "2")) == [(4, "", "min.insync.replicas", "2")]
    assert alter(view, BROKER, "", ("max.connections", DELETE, None)) == [(4, "", "max.connections", None)]
