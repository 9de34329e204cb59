"""The configs of single groups: those that Apache Kafka 4.4.0 takes are taken, and those that it refuses are refused."""

import pytest

from odradek.common.config.broker_config import load
from odradek.controller.metadata.resource_configs import check_group
from odradek.protocol.errors import ErrorCode, KafkaError

# As Kafka 4.4.0 answers IncrementalAlterConfigs.
TAKEN = (
    ("consumer.assignor.offload.enable", "true", "TRUE"),
    ("share.assignor.offload.enable", "false"),
    ("streams.assignor.offload.enable", "true"),
    ("streams.task.offset.interval.ms", "15000", "70000"),
    ("streams.num.warmup.replicas", "0", "20"),
    ("streams.acceptable.recovery.lag", "0", "3000000000"),
    ("streams.rack.aware.assignment.tags", "", "a", " a , b "),
    ("streams.assignor.name", "sticky"),
    ("share.auto.offset.reset", "latest", "earliest", "by_duration:PT1H", "by_duration:p1dt2h"),
    ("errors.deadletterqueue.topic.name", "", "_x", "dlq.t"),
)
REFUSED = (
    ("consumer.assignor.offload.enable", "yes", ""),
    ("streams.task.offset.interval.ms", "14999", "3000000000"),
    ("streams.num.warmup.replicas", "21", "-1"),
    ("streams.acceptable.recovery.lag", "-1", "x"),
    ("streams.rack.aware.assignment.tags", "a,a", "a, a", "a,,b"),
    ("streams.assignor.name", "other", ""),
    ("share.auto.offset.reset", "LATEST", "BY_DURATION:PT1H", "by_duration:-PT1H", "by_duration:"),
    ("errors.deadletterqueue.topic.name", "__x"),
    ("share.no.such", "1"),
)


def test_each_value_is_taken_or_refused_as_in_kafka():
    config = load("")
    for name, *values in TAKEN:
        for value in values:
            check_group(config, "g", {name: value})
    for name, *values in REFUSED:
        for value in values:
            with pytest.raises(KafkaError) as caught:
                check_group(config, "g", {name: value})
            assert caught.value.code == ErrorCode.INVALID_CONFIG, (name, value)
