import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.bed import ask, make_broker


def describe(broker, endpoint_type=1, *, operations=False):
    return ask(
        broker,
        ApiKey.DESCRIBE_CLUSTER,
        endpoint_type=endpoint_type,
        include_cluster_authorized_operations=operations,
        include_fenced_brokers=True,
    )


def test_the_cluster_is_this_broker():
    broker = make_broker(broker_rack="r1")
    response = describe(broker)
    assert (response.error_code, response.cluster_id, response.controller_id) == (ErrorCode.NONE, broker.cluster_id, 1)
    assert [(each.broker_id, each.host, each.port, each.rack, each.is_fenced) for each in response.brokers] == [
        (1, "127.0.0.1", 9999, "r1", False)
    ]


@pytest.mark.parametrize(("operations", "bits"), [(True, 8096), (False, -(2**31))])
def test_authorized_operations_are_told_to_whom_asks(operations, bits):
    assert describe(make_broker(), operations=operations).cluster_authorized_operations == bits


@pytest.mark.parametrize(
    ("endpoint_type", "code"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_only_brokers_can_be_asked_about(endpoint_type, code):
    response = describe(make_broker(), endpoint_type)
    assert (response.error_code, list(response.brokers)) == (code, [])
    assert response.error_message
