"""The broker's API handlers: one file per API key.

``SERVED`` has the versions of each API. Everything else is in the API's file:

    handle(services, context, request)    returns the canonical response (``protocol.messages``), or a ``Reply`` that will
                                          complete with it, or ``NO_RESPONSE``
    rule                                  the authorization check that runs first (``security.acl.rules``)
    pieces                                the place of the items, if a large request is handled in pieces (``broker.large``).
                                          Other requests are decoded and encoded in slices, and handled at once
    has_unbounded_response                True if a small request may have a large response, which is encoded in slices

ApiVersions is answered from ``SERVED``, and dispatch enforces it. A module is imported by the first request that needs it.
"""

from importlib import import_module
from types import ModuleType
from typing import Final

from odradek.broker.large import Pieces
from odradek.common.context import Handler, Served
from odradek.protocol.api_keys import ApiKey

# For requests that wait only for the disk or for replicas. If they were handled one at a time, each append would hold only one
# commit of a connection, each flush one produce, and each marker of a transaction would wait for the replication of the last one.
_PIPELINED: Final = 128


def _served(min_version: int, max_version: int, advertised_min: int | None = None, *, pipeline_depth: int = 1) -> Served:
    advertised = min_version if advertised_min is None else advertised_min
    return Served(min_version, max_version, advertised, pipeline_depth)


SERVED: dict[ApiKey, Served] = {
    # librdkafka before 2.8 derives the usable compression types from the lowest Produce version (KAFKA-18659).
    ApiKey.PRODUCE: _served(3, 13, advertised_min=0, pipeline_depth=_PIPELINED),
    ApiKey.FETCH: _served(4, 18),
    ApiKey.LIST_OFFSETS: _served(1, 11),
    ApiKey.METADATA: _served(0, 13),
    ApiKey.OFFSET_COMMIT: _served(2, 10, pipeline_depth=_PIPELINED),
    ApiKey.OFFSET_FETCH: _served(1, 10),
    ApiKey.FIND_COORDINATOR: _served(0, 6),
    ApiKey.JOIN_GROUP: _served(0, 9),
    ApiKey.HEARTBEAT: _served(0, 4),
    ApiKey.LEAVE_GROUP: _served(0, 5),
    ApiKey.SYNC_GROUP: _served(0, 5),
    ApiKey.DESCRIBE_GROUPS: _served(0, 6),
    ApiKey.LIST_GROUPS: _served(0, 5),
    ApiKey.SASL_HANDSHAKE: _served(0, 1),
    ApiKey.API_VERSIONS: _served(0, 5),
    ApiKey.CREATE_TOPICS: _served(2, 7),
    ApiKey.DELETE_TOPICS: _served(1, 6),
    ApiKey.DELETE_RECORDS: _served(0, 2),
    ApiKey.INIT_PRODUCER_ID: _served(0, 6),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _served(2, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: _served(0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: _served(0, 4),
    ApiKey.END_TXN: _served(0, 5),
    ApiKey.WRITE_TXN_MARKERS: _served(1, 2, pipeline_depth=_PIPELINED),
    ApiKey.TXN_OFFSET_COMMIT: _served(0, 6),
    ApiKey.DESCRIBE_ACLS: _served(1, 3),
    ApiKey.CREATE_ACLS: _served(1, 3),
    ApiKey.DELETE_ACLS: _served(1, 3),
    ApiKey.DESCRIBE_CONFIGS: _served(1, 4),
    ApiKey.ALTER_CONFIGS: _served(0, 2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: _served(1, 2),
    ApiKey.DESCRIBE_LOG_DIRS: _served(1, 5),
    ApiKey.SASL_AUTHENTICATE: _served(0, 2),
    ApiKey.CREATE_PARTITIONS: _served(0, 3),
    ApiKey.CREATE_DELEGATION_TOKEN: _served(1, 3),
    ApiKey.RENEW_DELEGATION_TOKEN: _served(1, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: _served(1, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _served(1, 3),
    ApiKey.DELETE_GROUPS: _served(0, 3),
    ApiKey.ELECT_LEADERS: _served(0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _served(0, 1),
    ApiKey.OFFSET_DELETE: _served(0, 0),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _served(0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _served(0, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _served(0, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: _served(0, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _served(0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _served(0, 0),
    ApiKey.DESCRIBE_QUORUM: _served(0, 2),
    ApiKey.UPDATE_FEATURES: _served(0, 2),
    ApiKey.DESCRIBE_CLUSTER: _served(0, 2),
    ApiKey.DESCRIBE_PRODUCERS: _served(0, 0),
    ApiKey.UNREGISTER_BROKER: _served(0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: _served(0, 0),
    ApiKey.LIST_TRANSACTIONS: _served(0, 2),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _served(0, 1),
    ApiKey.CONSUMER_GROUP_DESCRIBE: _served(0, 1),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _served(0, 0),
    ApiKey.PUSH_TELEMETRY: _served(0, 0),
    ApiKey.LIST_CONFIG_RESOURCES: _served(0, 1),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _served(0, 0),
    ApiKey.SHARE_GROUP_HEARTBEAT: _served(1, 1),
    ApiKey.SHARE_GROUP_DESCRIBE: _served(1, 1),
    ApiKey.SHARE_FETCH: _served(1, 2),
    ApiKey.SHARE_ACKNOWLEDGE: _served(1, 2),
    ApiKey.ADD_RAFT_VOTER: _served(0, 1),
    ApiKey.REMOVE_RAFT_VOTER: _served(0, 0),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _served(0, 0, pipeline_depth=_PIPELINED),
    ApiKey.READ_SHARE_GROUP_STATE: _served(0, 0, pipeline_depth=_PIPELINED),
    ApiKey.WRITE_SHARE_GROUP_STATE: _served(0, 1, pipeline_depth=_PIPELINED),
    ApiKey.DELETE_SHARE_GROUP_STATE: _served(0, 0, pipeline_depth=_PIPELINED),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _served(0, 1, pipeline_depth=_PIPELINED),
    ApiKey.STREAMS_GROUP_HEARTBEAT: _served(0, 1),
    ApiKey.STREAMS_GROUP_DESCRIBE: _served(0, 1),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _served(0, 1),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _served(0, 0),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _served(0, 0),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: _served(0, 0),
    ApiKey.UNREGISTER_CONTROLLER: _served(0, 0),
}

# Produce requests are often large, and have their own way of handling that.
NEVER_SLICED: Final = frozenset({ApiKey.PRODUCE})
WITH_RECORDS: Final = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH})


def module_of(api_key: ApiKey) -> str:
    """Return the name of the module in this package with the handler of an API."""
    return api_key.name.lower()


def load_module(api_key: ApiKey) -> ModuleType:
    """Import the module of a served API."""
    return import_module(f"odradek.broker.api.{module_of(api_key)}")


def load_handler(api_key: ApiKey) -> Handler:
    """Return the ``handle`` of a served API."""
    return load_module(api_key).handle  # type: ignore[no-any-return]


def pieces_of(api_key: ApiKey) -> Pieces | None:
    """Return the place of an API's items; None if its requests are handled at once."""
    return getattr(load_module(api_key), "pieces", None)


def has_unbounded_response(api_key: ApiKey) -> bool:
    """Return whether small requests of an API may have large responses."""
    return getattr(load_module(api_key), "has_unbounded_response", False)
