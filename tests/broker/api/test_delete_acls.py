from odradek.common.acls import AclResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.acl_requests import create, described, in_words, secured_broker, wanted
from tests.broker.api.bed import ask, make_broker

TEXTS = "allow User:a READ TOPIC t", "allow User:a READ GROUP t", "deny User:b READ TOPIC u*"


def deleted(broker, *filters):
    answer = ask(broker, ApiKey.DELETE_ACLS, filters=filters)
    assert all(not result.error_code for result in answer.filter_results)
    return [{in_words(*each[2:]) for each in result.matching_acls} for result in answer.filter_results]


def test_what_a_filter_selects_goes_and_is_told():
    broker = secured_broker()
    create(broker, *TEXTS)
    assert deleted(broker, wanted(resource_type=AclResourceType.TOPIC)) == [{TEXTS[0], TEXTS[2]}]
    assert described(broker) == {TEXTS[1]}
    assert len(broker.authorization.authorizer.acls) == 1


def test_each_filter_is_answered_with_what_it_selects():
    broker = secured_broker()
    create(broker, *TEXTS)
    found = deleted(broker, wanted(principal="User:a"), wanted(name="t"), wanted(name="none"))
    assert found == [{TEXTS[0], TEXTS[1]}, {TEXTS[0], TEXTS[1]}, set()]
    assert described(broker) == {TEXTS[2]}


def test_without_an_authorizer_there_are_none():
    answer = ask(make_broker(), ApiKey.DELETE_ACLS, filters=[wanted(), wanted()])
    assert [result.error_code for result in answer.filter_results] == [ErrorCode.SECURITY_DISABLED] * 2
