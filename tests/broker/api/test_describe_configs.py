import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_configs import DescribeConfigsResource
from tests.broker.api.bed import ask, make_broker
from tests.cases import each_case


def describe(broker, *resources, keys=(), synonyms=False, documentation=False):
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys) for kind, name in resources
    ]
    fields = {"resources": resources, "include_synonyms": synonyms, "include_documentation": documentation}
    return ask(broker, ApiKey.DESCRIBE_CONFIGS, **fields).results


def test_a_topic_is_described_with_its_override():
    broker = make_broker("events")
    broker.controller.alter_configs([(2, "events", "retention.ms", "5")])
    (result,) = describe(broker, (2, "events"), keys=("retention.ms", "no.such.config"))
    assert (result.error_code, result.resource_type, result.resource_name) == (ErrorCode.NONE, 2, "events")
    (config,) = result.configs
    assert (config.name, config.value, config.config_source, config.config_type) == ("retention.ms", "5", 1, 5)


@pytest.mark.parametrize("keys", [None, ()])
def test_without_keys_every_config_is_described(keys):
    (topic, broker) = describe(make_broker("events"), (2, "events"), (4, "1"), keys=keys)
    assert len(topic.configs) == 37
    assert len(broker.configs) > 90


def test_synonyms_and_documentation_come_only_when_asked_for():
    broker = make_broker("events", log_segment_bytes="2000000")
    ((without,),) = (result.configs for result in describe(broker, (2, "events"), keys=("segment.bytes",)))
    assert (without.synonyms, without.documentation) == ([], None)
    (asked,) = describe(broker, (2, "events"), keys=("segment.bytes",), synonyms=True, documentation=True)
    assert [(each.name, each.value, each.source) for each in asked.configs[0].synonyms] == [
        ("log.segment.bytes", "2000000", 4),
        ("log.segment.bytes", "1073741824", 5),
    ]
    assert asked.configs[0].documentation


def test_the_clusters_default_broker_has_the_name_of_nobody():
    broker = make_broker("events")
    broker.controller.alter_configs([(4, "", "max.connections", "5")])
    (result,) = describe(broker, (4, ""))
    described = [(config.name, config.value, config.config_source) for config in result.configs]
    assert described == [("min.insync.replicas", "1", 3), ("max.connections", "5", 3)]


# As Kafka 4.4.0 gives them for a group and a subscription that nobody has configured.
KAFKAS_GROUP_CONFIGS = """
    consumer.session.timeout.ms=45000 consumer.assignment.interval.ms=1000 consumer.heartbeat.interval.ms=5000
    share.auto.offset.reset=latest share.renew.acknowledge.enable=true share.session.timeout.ms=45000
    share.heartbeat.interval.ms=5000 share.delivery.count.limit=5 share.record.lock.duration.ms=30000
    share.assignment.interval.ms=1000 share.isolation.level=read_uncommitted share.partition.max.record.locks=2000
    streams.initial.rebalance.delay.ms=3000 streams.assignment.interval.ms=1000 streams.heartbeat.interval.ms=5000
    streams.session.timeout.ms=45000 streams.num.standby.replicas=0
    streams.rack.aware.assignment.tags= streams.assignor.name=sticky
    errors.deadletterqueue.topic.name= errors.deadletterqueue.copy.record.enable=false
"""


def test_internal_configs_of_a_group_are_described_if_the_group_or_the_broker_has_set_them():
    (before,) = describe(make_broker(), (32, "g"))
    broker = make_broker(group_streams_task_offset_interval_ms="30000")
    broker.controller.alter_configs([(32, "g", "streams.num.warmup.replicas", "3")])
    (after,) = describe(broker, (32, "g"))
    known = {config.name for config in before.configs}
    added = {config.name: (config.value, config.config_source) for config in after.configs if config.name not in known}
    assert added == {"streams.num.warmup.replicas": ("3", 8), "streams.task.offset.interval.ms": ("30000", 4)}


def test_a_group_and_client_metrics_have_kafkas_defaults():
    group, metrics = describe(make_broker("events"), (32, "g"), (16, "m"), synonyms=True)
    assert sorted(f"{config.name}={config.value}" for config in group.configs) == sorted(KAFKAS_GROUP_CONFIGS.split())
    assert {(config.config_source, config.read_only) for config in (*group.configs, *metrics.configs)} == {(5, False)}
    synonyms = {config.name: [tuple(each) for each in config.synonyms] for config in group.configs}
    assert synonyms["consumer.session.timeout.ms"] == [("group.consumer.session.timeout.ms", "45000", 5)]
    assert synonyms["share.isolation.level"] == [("share.isolation.level", "read_uncommitted", 5)]
    assert [(config.name, config.value, config.config_type, list(config.synonyms)) for config in metrics.configs] == [
        ("metrics", "", 7, []),
        ("interval.ms", "300000", 3, []),
        ("match", "", 7, []),
    ]


def test_what_kafka_has_set_on_groups_and_client_metrics_is_described_and_listed():
    broker = make_broker("events")
    broker.controller.alter_configs([(32, "g", "consumer.session.timeout.ms", "46000"), (16, "m", "match", "client_id=a")])
    group, metrics = describe(broker, (32, "g"), (16, "m"), keys=("consumer.session.timeout.ms", "match"), synonyms=True)
    ((set_on_group,), (set_on_metrics,)) = group.configs, metrics.configs
    assert (set_on_group.value, set_on_group.config_source) == ("46000", 8)
    assert [tuple(each) for each in set_on_group.synonyms] == [
        ("consumer.session.timeout.ms", "46000", 8),
        ("group.consumer.session.timeout.ms", "45000", 5),
    ]
    assert (set_on_metrics.value, set_on_metrics.config_source) == ("client_id=a", 7)
    listed = ask(broker, ApiKey.LIST_CONFIG_RESOURCES, resource_types=(16, 32)).config_resources
    assert [(each.resource_type, each.resource_name) for each in listed] == [(16, "m"), (32, "g")]


def test_a_broker_has_no_loggers():
    (result,) = describe(make_broker("events"), (8, "1"))
    assert (result.error_code, list(result.configs)) == (ErrorCode.NONE, [])


@each_case(
    ("resource", "code"),
    [
        ((2, "nowhere"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((2, ""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        ((2, "a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        ((4, "2"), ErrorCode.INVALID_REQUEST),
        ((4, "x"), ErrorCode.INVALID_REQUEST),
        ((8, ""), ErrorCode.INVALID_REQUEST),
        ((8, "2"), ErrorCode.INVALID_REQUEST),
        ((16, ""), ErrorCode.INVALID_REQUEST),
        ((32, ""), ErrorCode.INVALID_REQUEST),
        ((0, "x"), ErrorCode.INVALID_REQUEST),
        ((3, "x"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_described_has_its_error_and_the_rest_is_described(resource, code):
    refused, described = describe(make_broker("events"), resource, (2, "events"))
    assert (refused.error_code, refused.resource_type, refused.resource_name) == (code, *resource)
    assert not refused.configs
    assert described.error_code == ErrorCode.NONE
    assert described.configs
