"""The rule of each API, at a broker and at a controller, and the handlers behind their rules.

Rules for requests that are permitted or refused as a whole are here, the others in the modules beside this one.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from odradek.broker.authorization import (
    configs,
    descriptions,
    group_offsets,
    groups,
    records,
    tokens,
    topic_changes,
    transactions,
)
from odradek.broker.authorization.asked import Asked, Rule
from odradek.broker.authorization.refusals import refused
from odradek.broker.authorizer.access import Authorization
from odradek.broker.authorizer.acls import AclOperation, AclResourceType
from odradek.broker.context import Handler, RequestContext
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode

# SyncGroup from this version on.
_WITH_PROTOCOL: Final = 5


def on_cluster(operation: AclOperation) -> Rule:
    """The client needs ``operation`` on the cluster."""

    def rule(asked: Asked) -> Any:
        if asked.access.allows_cluster(operation):
            return asked.handle()
        return refused(asked, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    return rule


def reads_group(asked: Asked) -> Any:
    """READ on the group: Heartbeat, LeaveGroup."""
    if asked.access.allows(AclOperation.READ, AclResourceType.GROUP, asked.request.group_id):
        return asked.handle()
    return refused(asked, ErrorCode.GROUP_AUTHORIZATION_FAILED)


def write_txn_markers(asked: Asked) -> Any:
    """ALTER on the cluster, for tools, or CLUSTER_ACTION, for brokers."""
    access = asked.access
    if access.allows_cluster(AclOperation.ALTER, tells=False) or access.allows_cluster(AclOperation.CLUSTER_ACTION):
        return asked.handle()
    return refused(asked, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def acl_change(operation: AclOperation) -> Rule:
    """CreateAcls and DeleteAcls: like ``on_cluster``, but a message with codes that are UNKNOWN is none, whoever sends it."""
    rule = on_cluster(operation)

    def checked(asked: Asked) -> Any:
        from odradek.broker.handlers.acl_messages import has_unknown_codes

        return asked.handle() if has_unknown_codes(asked.request) else rule(asked)

    return checked


def sync_group(asked: Asked) -> Any:
    """READ on the group; a request that lacks its protocol is refused for that first."""
    request = asked.request
    if asked.context.version >= _WITH_PROTOCOL and (request.protocol_type is None or request.protocol_name is None):
        return refused(asked, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return reads_group(asked)


_ALTER: Final = on_cluster(AclOperation.ALTER)
_DESCRIBE: Final = on_cluster(AclOperation.DESCRIBE)
_CLUSTER_ACTION: Final = on_cluster(AclOperation.CLUSTER_ACTION)

# What is decided where the metadata are written.
_OF_METADATA: Final[dict[ApiKey, Rule]] = {
    ApiKey.CREATE_TOPICS: topic_changes.create_topics,
    ApiKey.DELETE_TOPICS: topic_changes.delete_topics,
    ApiKey.CREATE_PARTITIONS: topic_changes.create_partitions,
    ApiKey.DESCRIBE_CONFIGS: configs.describe_configs,
    ApiKey.ALTER_CONFIGS: configs.alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.alter_configs,
    ApiKey.ELECT_LEADERS: _ALTER,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _ALTER,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _DESCRIBE,
    ApiKey.DESCRIBE_QUORUM: _DESCRIBE,
    ApiKey.UPDATE_FEATURES: _ALTER,
    ApiKey.UNREGISTER_BROKER: _ALTER,
    ApiKey.DESCRIBE_ACLS: acl_change(AclOperation.DESCRIBE),
    ApiKey.CREATE_ACLS: acl_change(AclOperation.ALTER),
    ApiKey.DELETE_ACLS: acl_change(AclOperation.ALTER),
    ApiKey.ALTER_CLIENT_QUOTAS: on_cluster(AclOperation.ALTER_CONFIGS),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _ALTER,
    ApiKey.CREATE_DELEGATION_TOKEN: tokens.create_delegation_token,
}

OF_BROKERS: Final[Mapping[ApiKey, Rule]] = _OF_METADATA | {
    ApiKey.PRODUCE: records.produce,
    ApiKey.FETCH: records.fetch,
    ApiKey.LIST_OFFSETS: records.list_offsets,
    ApiKey.METADATA: descriptions.metadata,
    ApiKey.OFFSET_COMMIT: group_offsets.offset_commit,
    ApiKey.OFFSET_FETCH: group_offsets.offset_fetch,
    ApiKey.FIND_COORDINATOR: descriptions.find_coordinator,
    ApiKey.JOIN_GROUP: groups.join_group,
    ApiKey.HEARTBEAT: reads_group,
    ApiKey.LEAVE_GROUP: reads_group,
    ApiKey.SYNC_GROUP: sync_group,
    ApiKey.DESCRIBE_GROUPS: groups.describe_groups,
    ApiKey.LIST_GROUPS: groups.list_groups,
    ApiKey.DELETE_RECORDS: records.delete_records,
    ApiKey.INIT_PRODUCER_ID: transactions.init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: records.offset_for_leader_epoch,
    ApiKey.ADD_PARTITIONS_TO_TXN: transactions.add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: transactions.add_offsets_to_txn,
    ApiKey.END_TXN: transactions.end_txn,
    ApiKey.WRITE_TXN_MARKERS: write_txn_markers,
    ApiKey.TXN_OFFSET_COMMIT: group_offsets.txn_offset_commit,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _ALTER,
    ApiKey.DESCRIBE_LOG_DIRS: _DESCRIBE,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: tokens.describe_delegation_token,
    ApiKey.DELETE_GROUPS: groups.delete_groups,
    ApiKey.OFFSET_DELETE: group_offsets.offset_delete,
    ApiKey.DESCRIBE_CLUSTER: descriptions.describe_cluster,
    ApiKey.DESCRIBE_PRODUCERS: records.describe_producers,
    ApiKey.DESCRIBE_TRANSACTIONS: transactions.describe_transactions,
    ApiKey.LIST_TRANSACTIONS: transactions.list_transactions,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: groups.consumer_group_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: groups.consumer_group_describe,
    ApiKey.LIST_CONFIG_RESOURCES: on_cluster(AclOperation.DESCRIBE_CONFIGS),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: descriptions.describe_topic_partitions,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: on_cluster(AclOperation.DESCRIBE_CONFIGS),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _DESCRIBE,
}

OF_CONTROLLERS: Final[Mapping[ApiKey, Rule]] = _OF_METADATA | {
    ApiKey.FETCH: _CLUSTER_ACTION,
    ApiKey.FETCH_SNAPSHOT: _CLUSTER_ACTION,
    ApiKey.ALTER_PARTITION: _CLUSTER_ACTION,
    ApiKey.ENVELOPE: _CLUSTER_ACTION,
    ApiKey.DESCRIBE_CLUSTER: _ALTER,
    ApiKey.BROKER_REGISTRATION: _CLUSTER_ACTION,
    ApiKey.BROKER_HEARTBEAT: _CLUSTER_ACTION,
    ApiKey.ALLOCATE_PRODUCER_IDS: _CLUSTER_ACTION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _CLUSTER_ACTION,
}

# Anybody is told the versions, may say who it is, and push what it is asked for. Who may renew a delegation token or expire it
# stands in the token. The protocols of groups that are not there are refused whoever asks (``handlers.REFUSED``).
OPEN: Final = frozenset(
    {
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
    }
)


def behind_rules(
    load_handler: Callable[[ApiKey], Handler], authorization: Authorization, rules: Mapping[ApiKey, Rule]
) -> Callable[[ApiKey], Handler]:
    """What loads handlers that ask their rules first."""

    def load(api_key: ApiKey) -> Handler:
        handler = load_handler(api_key)
        rule = rules.get(api_key)
        return handler if rule is None else partial(_handle, authorization, rule, handler)

    return load


def _handle(
    authorization: Authorization, rule: Rule, handler: Handler, services: Any, context: RequestContext, request: Any
) -> Any:
    access = authorization.access(context)
    if access.is_own:
        return handler(services, context, request)
    return rule(Asked(access, services, context, request, handler))
