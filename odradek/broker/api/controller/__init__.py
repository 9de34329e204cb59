"""The APIs of a controller's listener: one file per API key, each with a ``handle(services, context, request)``.

``SERVED`` is the only table of the APIs that a controller serves. APIs in ``SHARED`` have their handlers in ``broker.api``, where
a broker with its own controller finds them, too.

Left out: the APIs between voters (Vote, BeginQuorumEpoch, EndQuorumEpoch, UpdateRaftVoter), since there is only one voter.
"""

from typing import Final

from odradek.broker import api as of_brokers
from odradek.common.context import Served
from odradek.protocol.api_keys import FORWARDABLE, ApiKey

SHARED: Final = FORWARDABLE - {ApiKey.DESCRIBE_QUORUM} | {
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.DESCRIBE_CONFIGS,
}

SERVED: Final[dict[ApiKey, Served]] = {api_key: of_brokers.SERVED[api_key] for api_key in sorted(SHARED)} | {
    api_key: Served(lowest, highest, lowest)
    for api_key, lowest, highest in (
        (ApiKey.FETCH, 4, 18),
        (ApiKey.API_VERSIONS, 0, 5),
        (ApiKey.DESCRIBE_QUORUM, 0, 2),
        (ApiKey.ALTER_PARTITION, 2, 3),
        (ApiKey.ENVELOPE, 0, 0),
        (ApiKey.FETCH_SNAPSHOT, 0, 1),
        (ApiKey.DESCRIBE_CLUSTER, 0, 2),
        (ApiKey.BROKER_REGISTRATION, 0, 4),
        (ApiKey.BROKER_HEARTBEAT, 0, 2),
        (ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0),
        (ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, 0),
    )
}


def module_of(api_key: ApiKey) -> str:
    """Return the full name of the module with the handler of an API."""
    room = of_brokers.__name__ if api_key in SHARED else __name__
    return f"{room}.{api_key.name.lower()}"
