"""Changes of the quorum's voters that are refused for what they name, and a log that lists the voters."""

from uuid import UUID

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.api.bed import ask

VOTER = {"voter_id": 9, "voter_directory_id": UUID(int=7)}
INVALID = [
    ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
    ({"voter_id": -1}, ErrorCode.INVALID_REQUEST),
    ({"voter_directory_id": None}, ErrorCode.INVALID_REQUEST),
]


def raise_kraft_version(broker):
    """From now on the log of ``broker`` lists its voter."""
    update = messages(ApiKey.UPDATE_FEATURES).FeatureUpdateKey(feature="kraft.version", max_version_level=1, upgrade_type=1)
    assert ask(broker, ApiKey.UPDATE_FEATURES, feature_updates=[update]).error_code == ErrorCode.NONE
