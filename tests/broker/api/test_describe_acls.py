import pytest

from odradek.common.acls import AclOperation, AclPermission, AclResourceType, PatternType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.acl_requests import ANY, create, described, secured_broker
from tests.broker.api.bed import ask, make_broker
from tests.cases import each_case

TEXTS = (
    "allow User:a READ TOPIC t",
    "allow User:b WRITE TOPIC t*",
    "deny User:a READ GROUP t 10.0.0.1",
    "allow User:a ALL TOPIC *",
)


@pytest.fixture(scope="module")
def broker():
    made = secured_broker()
    create(made, *TEXTS)
    return made


@each_case(
    ("filters", "selected"),
    [
        ({}, (0, 1, 2, 3)),
        ({"resource_type": AclResourceType.GROUP}, (2,)),
        ({"name": "t"}, (0, 1, 2)),
        ({"name": "tt", "pattern_type": PatternType.MATCH}, (1, 3)),
        ({"principal": "User:b"}, (1,)),
        ({"host": "10.0.0.1"}, (2,)),
        ({"operation": AclOperation.READ}, (0, 2)),
        ({"permission": AclPermission.DENY}, (2,)),
        ({"name": "none"}, ()),
    ],
)
def test_a_filter_selects(broker, filters, selected):
    assert described(broker, **filters) == {TEXTS[each] for each in selected}


def test_entries_of_one_pattern_are_told_together():
    made = secured_broker()
    create(made, "allow User:a READ TOPIC t", "allow User:b READ TOPIC t", "allow User:b READ TOPIC t*")
    answer = ask(
        made, ApiKey.DESCRIBE_ACLS, resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY
    )
    assert sorted((each.pattern_type, len(each.acls)) for each in answer.resources) == [(3, 2), (4, 1)]


def test_without_an_authorizer_there_are_none():
    answer = ask(
        make_broker(), ApiKey.DESCRIBE_ACLS, resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
    )
    assert answer.error_code == ErrorCode.SECURITY_DISABLED
