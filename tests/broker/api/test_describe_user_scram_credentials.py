import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_user_scram_credentials import UserName
from tests.broker.api.bed import ask, make_broker
from tests.broker.api.test_alter_user_scram_credentials import SHA_256, SHA_512, alter, upsertion


@pytest.fixture
def broker(core):
    alter(core, upsertion("bob"), upsertion("alice", SHA_512, 8192))
    alter(core, upsertion("alice", SHA_256))
    return core


def describe(broker, names):
    users = None if names is None else [UserName(name=name) for name in names]
    answer = ask(broker, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, users=users)
    assert answer.error_code == 0
    return {each.user: each.error_code or [tuple(info) for info in each.credential_infos] for each in answer.results}


@pytest.mark.parametrize("names", [None, []])
def test_all_users_are_told_where_none_is_named(broker, names):
    assert describe(broker, names) == {"alice": [(SHA_256, 4096), (SHA_512, 8192)], "bob": [(SHA_256, 4096)]}


def test_users_that_are_named_are_told_each_once(broker):
    assert describe(broker, ["bob", "carol", "alice", "alice"]) == {
        "bob": [(SHA_256, 4096)],
        "carol": ErrorCode.RESOURCE_NOT_FOUND,
        "alice": ErrorCode.DUPLICATE_RESOURCE,
    }


def test_nobody_is_told_where_nobody_is():
    assert describe(make_broker(), None) == {}
