import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode

from .bed import ask, make_broker


@pytest.mark.parametrize(
    ("broker_id", "error"),
    [(1, ErrorCode.INVALID_REQUEST), (2, ErrorCode.BROKER_ID_NOT_REGISTERED), (-1, ErrorCode.BROKER_ID_NOT_REGISTERED)],
)
def test_a_broker_alone_has_no_other_and_stays(broker_id, error):
    broker = make_broker()
    assert broker.node_id == 1
    response = ask(broker, ApiKey.UNREGISTER_BROKER, broker_id=broker_id)
    assert response.error_code == error
    assert response.error_message
