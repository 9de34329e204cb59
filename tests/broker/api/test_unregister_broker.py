import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.bed import ask


@pytest.mark.parametrize(
    ("broker_id", "error"),
    [(1, ErrorCode.INVALID_REQUEST), (2, ErrorCode.BROKER_ID_NOT_REGISTERED), (-1, ErrorCode.BROKER_ID_NOT_REGISTERED)],
)
def test_a_broker_alone_has_no_other_and_stays(core, broker_id, error):
    assert core.node_id == 1
    response = ask(core, ApiKey.UNREGISTER_BROKER, broker_id=broker_id)
    assert response.error_code == error
    assert response.error_message
