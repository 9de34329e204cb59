import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.bed import ask


@pytest.mark.parametrize(
    ("controller_id", "error"),
    [(1, ErrorCode.INVALID_REQUEST), (2, ErrorCode.CONTROLLER_ID_NOT_REGISTERED), (-1, ErrorCode.CONTROLLER_ID_NOT_REGISTERED)],
)
def test_a_broker_alone_is_the_active_controller_and_knows_no_other(core, controller_id, error):
    assert core.node_id == 1
    response = ask(core, ApiKey.UNREGISTER_CONTROLLER, controller_id=controller_id)
    assert response.error_code == error
    assert response.error_message
