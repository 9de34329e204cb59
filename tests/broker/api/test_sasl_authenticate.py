import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.bed import SERVED, ask, make_broker

API = ApiKey.SASL_AUTHENTICATE


@pytest.mark.parametrize("version", range(SERVED[API].max_version + 1))
def test_a_client_that_need_not_authenticate_is_told_its_state(version):
    assert ask(make_broker(), API, version).error_code == ErrorCode.ILLEGAL_SASL_STATE
