"""The APIs that administer a cluster, in the version ranges that have the fields their callers need."""

from typing import TYPE_CHECKING, Final

from odradek.client.api import Api
from odradek.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.protocol.message_types import consumer_group_describe as group_types
    from odradek.protocol.message_types import consumer_group_heartbeat as heartbeat_types
    from odradek.protocol.message_types import incremental_alter_configs as alter_types
    from odradek.protocol.message_types.api_versions import ApiVersionsRequest, ApiVersionsResponse
    from odradek.protocol.message_types.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
    from odradek.protocol.message_types.create_topics import CreateTopicsRequest, CreateTopicsResponse
    from odradek.protocol.message_types.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
    from odradek.protocol.message_types.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
    from odradek.protocol.message_types.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
    from odradek.protocol.message_types.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
    from odradek.protocol.message_types.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
    from odradek.protocol.message_types.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
    from odradek.protocol.message_types.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
    from odradek.protocol.message_types.describe_producers import DescribeProducersRequest, DescribeProducersResponse
    from odradek.protocol.message_types.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
    from odradek.protocol.message_types.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
    from odradek.protocol.message_types.list_groups import ListGroupsRequest, ListGroupsResponse
    from odradek.protocol.message_types.list_transactions import ListTransactionsRequest, ListTransactionsResponse
    from odradek.protocol.message_types.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
    from odradek.protocol.message_types.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

# Version 3 has the features.
API_VERSIONS: Final["Api[ApiVersionsRequest, ApiVersionsResponse]"] = Api(ApiKey.API_VERSIONS, 3)
CONSUMER_GROUP_DESCRIBE: Final["Api[group_types.ConsumerGroupDescribeRequest, group_types.ConsumerGroupDescribeResponse]"] = Api(
    ApiKey.CONSUMER_GROUP_DESCRIBE
)
CONSUMER_GROUP_HEARTBEAT: Final[
    "Api[heartbeat_types.ConsumerGroupHeartbeatRequest, heartbeat_types.ConsumerGroupHeartbeatResponse]"
] = Api(ApiKey.CONSUMER_GROUP_HEARTBEAT)
CREATE_PARTITIONS: Final["Api[CreatePartitionsRequest, CreatePartitionsResponse]"] = Api(ApiKey.CREATE_PARTITIONS)
CREATE_TOPICS: Final["Api[CreateTopicsRequest, CreateTopicsResponse]"] = Api(ApiKey.CREATE_TOPICS)
DELETE_GROUPS: Final["Api[DeleteGroupsRequest, DeleteGroupsResponse]"] = Api(ApiKey.DELETE_GROUPS)
DELETE_RECORDS: Final["Api[DeleteRecordsRequest, DeleteRecordsResponse]"] = Api(ApiKey.DELETE_RECORDS)
DELETE_TOPICS: Final["Api[DeleteTopicsRequest, DeleteTopicsResponse]"] = Api(ApiKey.DELETE_TOPICS)
DESCRIBE_CLUSTER: Final["Api[DescribeClusterRequest, DescribeClusterResponse]"] = Api(ApiKey.DESCRIBE_CLUSTER)
DESCRIBE_CONFIGS: Final["Api[DescribeConfigsRequest, DescribeConfigsResponse]"] = Api(ApiKey.DESCRIBE_CONFIGS)
DESCRIBE_GROUPS: Final["Api[DescribeGroupsRequest, DescribeGroupsResponse]"] = Api(ApiKey.DESCRIBE_GROUPS)
DESCRIBE_LOG_DIRS: Final["Api[DescribeLogDirsRequest, DescribeLogDirsResponse]"] = Api(ApiKey.DESCRIBE_LOG_DIRS)
DESCRIBE_PRODUCERS: Final["Api[DescribeProducersRequest, DescribeProducersResponse]"] = Api(ApiKey.DESCRIBE_PRODUCERS)
DESCRIBE_QUORUM: Final["Api[DescribeQuorumRequest, DescribeQuorumResponse]"] = Api(ApiKey.DESCRIBE_QUORUM)
DESCRIBE_TRANSACTIONS: Final["Api[DescribeTransactionsRequest, DescribeTransactionsResponse]"] = Api(ApiKey.DESCRIBE_TRANSACTIONS)
INCREMENTAL_ALTER_CONFIGS: Final[
    "Api[alter_types.IncrementalAlterConfigsRequest, alter_types.IncrementalAlterConfigsResponse]"
] = Api(ApiKey.INCREMENTAL_ALTER_CONFIGS)
LIST_GROUPS: Final["Api[ListGroupsRequest, ListGroupsResponse]"] = Api(ApiKey.LIST_GROUPS)
LIST_TRANSACTIONS: Final["Api[ListTransactionsRequest, ListTransactionsResponse]"] = Api(ApiKey.LIST_TRANSACTIONS)
OFFSET_DELETE: Final["Api[OffsetDeleteRequest, OffsetDeleteResponse]"] = Api(ApiKey.OFFSET_DELETE)
WRITE_TXN_MARKERS: Final["Api[WriteTxnMarkersRequest, WriteTxnMarkersResponse]"] = Api(ApiKey.WRITE_TXN_MARKERS, 1)
