"""The APIs of a controller's listener: one file per API key, each with a ``handle(services, context, request)``.

``SERVED`` is the only table of the APIs that a controller serves. APIs that a broker with its own controller serves as well are
in ``broker.api`` (``SHARED``).

Left out: the APIs between voters (Vote, BeginQuorumEpoch, EndQuorumEpoch, AddRaftVoter and the like), since there is only one
voter.
"""

from typing import Final

from odradek.common.context import Served
from odradek.protocol.api_keys import ApiKey

SHARED: Final = frozenset(
    {
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
    }
)

SERVED: Final[dict[ApiKey, Served]] = {
    api_key: Served(lowest, highest, lowest)
    for api_key, lowest, highest in (
        (ApiKey.FETCH, 4, 18),
        (ApiKey.SASL_HANDSHAKE, 0, 1),
        (ApiKey.API_VERSIONS, 0, 4),
        (ApiKey.CREATE_TOPICS, 2, 7),
        (ApiKey.DELETE_TOPICS, 1, 6),
        (ApiKey.DESCRIBE_ACLS, 1, 3),
        (ApiKey.CREATE_ACLS, 1, 3),
        (ApiKey.DELETE_ACLS, 1, 3),
        (ApiKey.DESCRIBE_CONFIGS, 1, 4),
        (ApiKey.ALTER_CONFIGS, 0, 2),
        (ApiKey.SASL_AUTHENTICATE, 0, 2),
        (ApiKey.CREATE_PARTITIONS, 0, 3),
        (ApiKey.CREATE_DELEGATION_TOKEN, 1, 3),
        (ApiKey.RENEW_DELEGATION_TOKEN, 1, 2),
        (ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2),
        (ApiKey.ELECT_LEADERS, 0, 2),
        (ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1),
        (ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1),
        (ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0),
        (ApiKey.ALTER_CLIENT_QUOTAS, 0, 1),
        (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0),
        (ApiKey.DESCRIBE_QUORUM, 0, 2),
        (ApiKey.ALTER_PARTITION, 2, 3),
        (ApiKey.UPDATE_FEATURES, 0, 2),
        (ApiKey.ENVELOPE, 0, 0),
        (ApiKey.FETCH_SNAPSHOT, 0, 1),
        (ApiKey.DESCRIBE_CLUSTER, 0, 2),
        (ApiKey.BROKER_REGISTRATION, 0, 4),
        (ApiKey.BROKER_HEARTBEAT, 0, 2),
        (ApiKey.UNREGISTER_BROKER, 0, 0),
        (ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0),
        (ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, 0),
    )
}


def module_of(api_key: ApiKey) -> str:
    """Return the full name of the module with the handler of an API."""
    room = "odradek.broker.api" if api_key in SHARED else __name__
    return f"{room}.{api_key.name.lower()}"
