"""AlterConfigs: what is asked replaces what is in the metadata log, and each resource has its answer."""

from odradek.broker.handlers.alter_configs import handle
from odradek.broker.metadata.metadata_log import MetadataLog
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource

from .bed import make_broker


def batches(broker):
    """What the metadata log holds."""
    return list(broker.controller._log.read_all())


def alter(broker, *resources, validate_only=False):
    request = AlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterableConfig(name=key, value=value) for key, value in configs],
            )
            for kind, name, *configs in resources
        ],
        validate_only=validate_only,
    )
    return handle(broker, None, request).response.responses


def test_altering_replaces_all_overrides():
    broker = make_broker("events")
    broker.controller.alter_configs([(2, "events", "flush.ms", "6")])
    (answer,) = alter(broker, (2, "events", ("retention.ms", "5")))
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    assert broker.controller.image.configs(2, "events") == {"retention.ms": "5"}


def test_what_is_only_validated_is_answered_and_not_done():
    broker = make_broker("events")
    written = len(batches(broker))
    fine, wrong = alter(broker, (2, "events", ("retention.ms", "5")), (2, "nowhere", ("retention.ms", "5")), validate_only=True)
    assert [answer.error_code for answer in (fine, wrong)] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert len(batches(broker)) == written


def test_a_refusal_tells_its_reason():
    (answer,) = alter(make_broker("events"), (2, "events", ("retention.ms", "soon")))
    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert "retention.ms" in answer.error_message


def test_a_metadata_log_that_fails_is_answered(monkeypatch):
    def fail(*_, **__):
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "disk full")

    broker = make_broker("events")
    monkeypatch.setattr(MetadataLog, "append", fail)
    (answer,) = alter(broker, (2, "events", ("retention.ms", "5")))
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.controller.image.configs(2, "events") == {}
