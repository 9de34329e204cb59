import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.api.bed import ask, make_broker

M = messages(ApiKey.UPDATE_FEATURES)


def update(feature, level, upgrade_type=1):
    updates = [M.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=upgrade_type)]
    return ask(make_broker(), ApiKey.UPDATE_FEATURES, feature_updates=updates)


def test_the_level_that_is_may_be_asked_for():
    assert update("metadata.version", 33).error_code == ErrorCode.NONE


def test_the_transaction_version_may_be_lowered_but_not_by_an_upgrade():
    assert update("transaction.version", 0, 2).error_code == ErrorCode.NONE
    assert update("transaction.version", 0, 1).error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_the_log_tells_of_the_voter_from_kraft_version_1_on(core):
    levels = {"kraft.version": 1, "share.version": 2}
    for _ in range(2):
        updates = [M.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=1) for name, level in levels.items()]
        assert ask(core, ApiKey.UPDATE_FEATURES, feature_updates=updates).error_code == ErrorCode.NONE
        told = ask(core, ApiKey.API_VERSIONS, client_software_name="x", client_software_version="1")
        assert {each.name: each.max_version_level for each in told.finalized_features}.items() >= levels.items()


@pytest.mark.parametrize(
    ("feature", "level", "upgrade_type"), [("nope", 1, 1), ("metadata.version", 32, 2), ("metadata.version", 34, 1)]
)
def test_a_level_that_cannot_be_is_refused(feature, level, upgrade_type):
    response = update(feature, level, upgrade_type)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert feature in response.error_message
