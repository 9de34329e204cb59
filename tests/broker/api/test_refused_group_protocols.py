"""The answers are those of Apache Kafka 4.3.1 with share.version and streams.version at 0."""

import pytest

from odradek.broker.api import REFUSED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.bed import ask, make_broker

UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION
DESCRIBING = [ApiKey.STREAMS_GROUP_DESCRIBE]


@pytest.mark.parametrize("api_key", sorted(REFUSED - set(DESCRIBING)))
def test_a_request_is_refused_with_a_code_and_nothing_is_kept_of_it(api_key):
    broker = make_broker("t")
    assert ask(broker, api_key, group_id="g").error_code == UNSUPPORTED
    assert not ask(broker, ApiKey.LIST_GROUPS).groups


@pytest.mark.parametrize("api_key", DESCRIBING)
def test_each_group_to_describe_is_refused(api_key):
    groups = ask(make_broker("t"), api_key, group_ids=("g", "h")).groups
    assert [(group.group_id, group.error_code, group.error_message) for group in groups] == [
        ("g", UNSUPPORTED, None),
        ("h", UNSUPPORTED, None),
    ]


def test_a_refused_member_of_a_streams_group_is_told_nothing_of_tasks():
    told = ask(make_broker("t"), ApiKey.STREAMS_GROUP_HEARTBEAT, group_id="g")
    assert (told.active_tasks, told.standby_tasks, told.warmup_tasks, told.partitions_by_user_endpoint) == (None,) * 4


def test_the_feature_of_streams_groups_is_not_finalized():
    names = {feature.name for feature in ask(make_broker("t"), ApiKey.API_VERSIONS, **SOFTWARE).finalized_features}
    assert "streams.version" not in names


SOFTWARE = {"client_software_name": "test", "client_software_version": "1"}
