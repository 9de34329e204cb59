"""ShareAcknowledge on a broker: its session, and the errors of partitions."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.bed import ask, make_broker


def test_without_the_feature_the_request_is_refused():
    broker = make_broker("t")
    broker.controller.image.features.pop("share.version", None)
    assert ask(broker, ApiKey.SHARE_ACKNOWLEDGE, group_id="g", member_id="m").error_code == ErrorCode.UNSUPPORTED_VERSION
