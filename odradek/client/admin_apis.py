"""The APIs that administer a cluster, in the version ranges that have the fields their callers need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.client.api import Api
from odradek.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    # Each caller imports only the classes of the messages that it sends.
    from odradek.protocol.message_types import alter_client_quotas as alter_quotas
    from odradek.protocol.message_types import alter_share_group_offsets as alter_shares
    from odradek.protocol.message_types import alter_user_scram_credentials as alter_scram
    from odradek.protocol.message_types import consumer_group_describe as group_types
    from odradek.protocol.message_types import consumer_group_heartbeat as heartbeat_types
    from odradek.protocol.message_types import create_delegation_token as create_token
    from odradek.protocol.message_types import delete_share_group_offsets as delete_shares
    from odradek.protocol.message_types import describe_client_quotas as describe_quotas
    from odradek.protocol.message_types import describe_delegation_token as describe_token
    from odradek.protocol.message_types import describe_share_group_offsets as describe_shares
    from odradek.protocol.message_types import describe_user_scram_credentials as describe_scram
    from odradek.protocol.message_types import expire_delegation_token as expire_token
    from odradek.protocol.message_types import renew_delegation_token as renew_token
    from odradek.protocol.message_types import share_group_describe as share_types
    from odradek.protocol.message_types import streams_group_describe as streams_types
    from odradek.protocol.message_types import streams_group_heartbeat as streams_heartbeat_types
    from odradek.protocol.message_types.api_versions import ApiVersionsRequest, ApiVersionsResponse
    from odradek.protocol.message_types.create_acls import CreateAclsRequest, CreateAclsResponse
    from odradek.protocol.message_types.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
    from odradek.protocol.message_types.create_topics import CreateTopicsRequest, CreateTopicsResponse
    from odradek.protocol.message_types.delete_acls import DeleteAclsRequest, DeleteAclsResponse
    from odradek.protocol.message_types.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
    from odradek.protocol.message_types.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
    from odradek.protocol.message_types.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
    from odradek.protocol.message_types.describe_acls import DescribeAclsRequest, DescribeAclsResponse
    from odradek.protocol.message_types.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
    from odradek.protocol.message_types.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
    from odradek.protocol.message_types.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
    from odradek.protocol.message_types.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
    from odradek.protocol.message_types.describe_producers import DescribeProducersRequest, DescribeProducersResponse
    from odradek.protocol.message_types.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
    from odradek.protocol.message_types.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
    from odradek.protocol.message_types.incremental_alter_configs import (
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )
    from odradek.protocol.message_types.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
    from odradek.protocol.message_types.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
    from odradek.protocol.message_types.list_groups import ListGroupsRequest, ListGroupsResponse
    from odradek.protocol.message_types.list_transactions import ListTransactionsRequest, ListTransactionsResponse
    from odradek.protocol.message_types.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
    from odradek.protocol.message_types.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
    from odradek.protocol.message_types.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

ALTER_CLIENT_QUOTAS: Final[Api[alter_quotas.AlterClientQuotasRequest, alter_quotas.AlterClientQuotasResponse]] = Api(
    ApiKey.ALTER_CLIENT_QUOTAS
)
ALTER_SHARE_GROUP_OFFSETS: Final[Api[alter_shares.AlterShareGroupOffsetsRequest, alter_shares.AlterShareGroupOffsetsResponse]] = (
    Api(ApiKey.ALTER_SHARE_GROUP_OFFSETS)
)
ALTER_USER_SCRAM_CREDENTIALS: Final[
    Api[alter_scram.AlterUserScramCredentialsRequest, alter_scram.AlterUserScramCredentialsResponse]
] = Api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
# Version 3 has the features.
API_VERSIONS: Final[Api[ApiVersionsRequest, ApiVersionsResponse]] = Api(ApiKey.API_VERSIONS, 3)
CONSUMER_GROUP_DESCRIBE: Final[Api[group_types.ConsumerGroupDescribeRequest, group_types.ConsumerGroupDescribeResponse]] = Api(
    ApiKey.CONSUMER_GROUP_DESCRIBE
)
CONSUMER_GROUP_HEARTBEAT: Final[
    Api[heartbeat_types.ConsumerGroupHeartbeatRequest, heartbeat_types.ConsumerGroupHeartbeatResponse]
] = Api(ApiKey.CONSUMER_GROUP_HEARTBEAT)
CREATE_ACLS: Final[Api[CreateAclsRequest, CreateAclsResponse]] = Api(ApiKey.CREATE_ACLS)
# Version 3 can name another owner.
CREATE_DELEGATION_TOKEN: Final[Api[create_token.CreateDelegationTokenRequest, create_token.CreateDelegationTokenResponse]] = Api(
    ApiKey.CREATE_DELEGATION_TOKEN
)
CREATE_DELEGATION_TOKEN_FOR_ANOTHER: Final[
    Api[create_token.CreateDelegationTokenRequest, create_token.CreateDelegationTokenResponse]
] = Api(ApiKey.CREATE_DELEGATION_TOKEN, 3)
CREATE_PARTITIONS: Final[Api[CreatePartitionsRequest, CreatePartitionsResponse]] = Api(ApiKey.CREATE_PARTITIONS)
CREATE_TOPICS: Final[Api[CreateTopicsRequest, CreateTopicsResponse]] = Api(ApiKey.CREATE_TOPICS)
DELETE_ACLS: Final[Api[DeleteAclsRequest, DeleteAclsResponse]] = Api(ApiKey.DELETE_ACLS)
DELETE_GROUPS: Final[Api[DeleteGroupsRequest, DeleteGroupsResponse]] = Api(ApiKey.DELETE_GROUPS)
DELETE_RECORDS: Final[Api[DeleteRecordsRequest, DeleteRecordsResponse]] = Api(ApiKey.DELETE_RECORDS)
DELETE_SHARE_GROUP_OFFSETS: Final[
    Api[delete_shares.DeleteShareGroupOffsetsRequest, delete_shares.DeleteShareGroupOffsetsResponse]
] = Api(ApiKey.DELETE_SHARE_GROUP_OFFSETS)
DELETE_TOPICS: Final[Api[DeleteTopicsRequest, DeleteTopicsResponse]] = Api(ApiKey.DELETE_TOPICS)
DESCRIBE_ACLS: Final[Api[DescribeAclsRequest, DescribeAclsResponse]] = Api(ApiKey.DESCRIBE_ACLS)
DESCRIBE_CLIENT_QUOTAS: Final[Api[describe_quotas.DescribeClientQuotasRequest, describe_quotas.DescribeClientQuotasResponse]] = (
    Api(ApiKey.DESCRIBE_CLIENT_QUOTAS)
)
# Version 2 can include fenced brokers.
DESCRIBE_CLUSTER: Final[Api[DescribeClusterRequest, DescribeClusterResponse]] = Api(ApiKey.DESCRIBE_CLUSTER, 2)
DESCRIBE_CONFIGS: Final[Api[DescribeConfigsRequest, DescribeConfigsResponse]] = Api(ApiKey.DESCRIBE_CONFIGS)
DESCRIBE_DELEGATION_TOKEN: Final[
    Api[describe_token.DescribeDelegationTokenRequest, describe_token.DescribeDelegationTokenResponse]
] = Api(ApiKey.DESCRIBE_DELEGATION_TOKEN)
DESCRIBE_GROUPS: Final[Api[DescribeGroupsRequest, DescribeGroupsResponse]] = Api(ApiKey.DESCRIBE_GROUPS)
DESCRIBE_LOG_DIRS: Final[Api[DescribeLogDirsRequest, DescribeLogDirsResponse]] = Api(ApiKey.DESCRIBE_LOG_DIRS)
DESCRIBE_PRODUCERS: Final[Api[DescribeProducersRequest, DescribeProducersResponse]] = Api(ApiKey.DESCRIBE_PRODUCERS)
DESCRIBE_QUORUM: Final[Api[DescribeQuorumRequest, DescribeQuorumResponse]] = Api(ApiKey.DESCRIBE_QUORUM)
DESCRIBE_SHARE_GROUP_OFFSETS: Final[
    Api[describe_shares.DescribeShareGroupOffsetsRequest, describe_shares.DescribeShareGroupOffsetsResponse]
] = Api(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS)
DESCRIBE_TRANSACTIONS: Final[Api[DescribeTransactionsRequest, DescribeTransactionsResponse]] = Api(ApiKey.DESCRIBE_TRANSACTIONS)
DESCRIBE_USER_SCRAM_CREDENTIALS: Final[
    Api[describe_scram.DescribeUserScramCredentialsRequest, describe_scram.DescribeUserScramCredentialsResponse]
] = Api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
EXPIRE_DELEGATION_TOKEN: Final[Api[expire_token.ExpireDelegationTokenRequest, expire_token.ExpireDelegationTokenResponse]] = Api(
    ApiKey.EXPIRE_DELEGATION_TOKEN
)
INCREMENTAL_ALTER_CONFIGS: Final[Api[IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse]] = Api(
    ApiKey.INCREMENTAL_ALTER_CONFIGS
)
INIT_PRODUCER_ID: Final[Api[InitProducerIdRequest, InitProducerIdResponse]] = Api(ApiKey.INIT_PRODUCER_ID, 2)
LIST_CONFIG_RESOURCES: Final[Api[ListConfigResourcesRequest, ListConfigResourcesResponse]] = Api(ApiKey.LIST_CONFIG_RESOURCES)
LIST_GROUPS: Final[Api[ListGroupsRequest, ListGroupsResponse]] = Api(ApiKey.LIST_GROUPS)
LIST_TRANSACTIONS: Final[Api[ListTransactionsRequest, ListTransactionsResponse]] = Api(ApiKey.LIST_TRANSACTIONS)
LIST_TRANSACTIONS_BY_DURATION: Final[Api[ListTransactionsRequest, ListTransactionsResponse]] = Api(ApiKey.LIST_TRANSACTIONS, 1)
LIST_TRANSACTIONS_BY_PATTERN: Final[Api[ListTransactionsRequest, ListTransactionsResponse]] = Api(ApiKey.LIST_TRANSACTIONS, 2)
OFFSET_DELETE: Final[Api[OffsetDeleteRequest, OffsetDeleteResponse]] = Api(ApiKey.OFFSET_DELETE)
RENEW_DELEGATION_TOKEN: Final[Api[renew_token.RenewDelegationTokenRequest, renew_token.RenewDelegationTokenResponse]] = Api(
    ApiKey.RENEW_DELEGATION_TOKEN
)
SHARE_GROUP_DESCRIBE: Final[Api[share_types.ShareGroupDescribeRequest, share_types.ShareGroupDescribeResponse]] = Api(
    ApiKey.SHARE_GROUP_DESCRIBE
)
STREAMS_GROUP_DESCRIBE: Final[Api[streams_types.StreamsGroupDescribeRequest, streams_types.StreamsGroupDescribeResponse]] = Api(
    ApiKey.STREAMS_GROUP_DESCRIBE
)
STREAMS_GROUP_HEARTBEAT: Final[
    Api[streams_heartbeat_types.StreamsGroupHeartbeatRequest, streams_heartbeat_types.StreamsGroupHeartbeatResponse]
] = Api(ApiKey.STREAMS_GROUP_HEARTBEAT)
# Version 0 cannot only validate.
UPDATE_FEATURES: Final[Api[UpdateFeaturesRequest, UpdateFeaturesResponse]] = Api(ApiKey.UPDATE_FEATURES, 1)
WRITE_TXN_MARKERS: Final[Api[WriteTxnMarkersRequest, WriteTxnMarkersResponse]] = Api(ApiKey.WRITE_TXN_MARKERS, 1)
