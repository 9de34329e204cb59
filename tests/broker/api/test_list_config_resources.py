import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.bed import ask, make_broker


def listed(*types):
    response = ask(make_broker("a", "b"), ApiKey.LIST_CONFIG_RESOURCES, resource_types=types)
    return response.error_code, [(each.resource_type, each.resource_name) for each in response.config_resources]


@pytest.mark.parametrize(
    ("types", "resources"),
    [
        ((), [(2, "a"), (2, "b"), (4, "1"), (8, "1")]),
        ((2, 2), [(2, "a"), (2, "b")]),
        ((4,), [(4, "1")]),
        ((16,), []),
        ((32,), []),
    ],
)
def test_resources_are_listed_by_type_and_all_of_them_without_one(types, resources):
    assert listed(*types) == (ErrorCode.NONE, resources)


@pytest.mark.parametrize("types", [(0,), (3,), (2, 3)])
def test_a_type_nobody_knows_is_unsupported(types):
    assert listed(*types) == (ErrorCode.UNSUPPORTED_VERSION, [])
