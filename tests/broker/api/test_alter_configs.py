"""AlterConfigs: what is asked replaces what is in the metadata log, and each resource has its answer."""

from odradek.broker.api.alter_configs import handle
from odradek.controller.metadata.metadata_log import MetadataLog
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from odradek.protocol.message_types.create_topics import CreatableTopic, CreateTopicsRequest
from tests.broker.api.bed import make_broker
from tests.broker.slow_broker import slow_broker


def batches(broker):
    """What the metadata log holds."""
    return list(broker.controller._log.read_all())


def alter(broker, *resources, validate_only=False):
    request = AlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind, resource_name=name, configs=[AlterableConfig(name=key, value=value) for key, value in configs]
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
    monkeypatch.setattr(MetadataLog, "_append", fail)
    (answer,) = alter(broker, (2, "events", ("retention.ms", "5")))
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.controller.image.configs(2, "events") == {}


async def test_many_resources_are_altered_over_several_turns_and_answered_in_order():
    names = [f"t{number}" for number in range(300)]
    async with slow_broker() as broker:
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names[::2]]
        await broker.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=topics), 7)
        for validate_only, value in ((True, {}), (False, {"retention.ms": "5"})):
            resources = [
                AlterConfigsResource(
                    resource_type=2, resource_name=name, configs=[AlterableConfig(name="retention.ms", value="5")]
                )
                for name in names
            ]
            asked = AlterConfigsRequest(resources=resources, validate_only=validate_only)
            answer = broker.send(ApiKey.ALTER_CONFIGS, asked, 2)
            assert not answer.done
            told = [(each.resource_name, each.error_code) for each in (await broker.wait(answer)).responses]
            assert told == [
                (name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if place % 2 else ErrorCode.NONE) for place, name in enumerate(names)
            ]
            image = broker.core.controller.image
            assert all(image.configs(2, name) == value for name in names[::2])


def test_a_log_that_fails_is_the_answer_to_all_of_many_that_would_have_been_done(monkeypatch):
    broker = make_broker("events")

    def fail(_log, _records, *, now_ms):
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "disk full")
        yield now_ms

    monkeypatch.setattr(MetadataLog, "append_in_slices", fail)
    wrong = [(2, f"nowhere{number}", ("retention.ms", "5")) for number in range(100)]
    first, *others = alter(broker, (2, "events", ("retention.ms", "5")), *wrong)
    assert (first.error_code, first.error_message) == (ErrorCode.KAFKA_STORAGE_ERROR, "disk full")
    assert {answer.error_code for answer in others} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
