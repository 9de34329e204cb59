"""IncrementalAlterConfigs: each operation reaches the metadata log, and each resource has its answer."""

from odradek.broker.api.incremental_alter_configs import handle
from odradek.controller.metadata.alterations import APPEND, SET
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.api.bed import make_broker


def batches(broker):
    """What the metadata log holds."""
    return list(broker.controller._log.read_all())


def alter(broker, *resources, validate_only=False):
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterableConfig(name=key, config_operation=operation, value=value) for key, operation, value in configs],
            )
            for kind, name, *configs in resources
        ],
        validate_only=validate_only,
    )
    return handle(broker, None, request).response.responses


def test_incremental_changes_are_in_the_image_and_leave_the_others():
    broker = make_broker("events")
    broker.controller.alter_configs([(2, "events", "flush.ms", "6")])
    (answer,) = alter(broker, (2, "events", ("retention.ms", SET, "5"), ("cleanup.policy", APPEND, "compact")))
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    assert (answer.resource_type, answer.resource_name) == (2, "events")
    assert broker.controller.image.configs(2, "events") == {
        "flush.ms": "6",
        "retention.ms": "5",
        "cleanup.policy": "delete,compact",
    }


def test_what_is_only_validated_is_answered_and_not_done():
    broker = make_broker("events")
    written = len(batches(broker))
    fine, wrong = alter(
        broker, (2, "events", ("retention.ms", SET, "5")), (4, "1", ("num.partitions", SET, "5")), validate_only=True
    )
    assert [answer.error_code for answer in (fine, wrong)] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert len(batches(broker)) == written


def test_one_request_is_one_batch_of_the_metadata_log():
    broker = make_broker("events", "clicks")
    written = len(batches(broker))
    alter(
        broker,
        (2, "events", ("retention.ms", SET, "5")),
        (2, "nowhere", ("retention.ms", SET, "5")),
        (2, "clicks", ("retention.ms", SET, "5")),
    )
    assert len(batches(broker)) == written + 1
    assert len(batches(broker)[-1].records) == 2
