"""The APIs of producers and consumers, in the versions that name topics, as any Kafka from 0.11 to the newest serves them."""

from typing import TYPE_CHECKING, Final

from odradek.client.api import Api
from odradek.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.protocol.message_types.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
    from odradek.protocol.message_types.end_txn import EndTxnRequest, EndTxnResponse
    from odradek.protocol.message_types.fetch import FetchRequest, FetchResponse
    from odradek.protocol.message_types.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
    from odradek.protocol.message_types.heartbeat import HeartbeatRequest, HeartbeatResponse
    from odradek.protocol.message_types.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
    from odradek.protocol.message_types.join_group import JoinGroupRequest, JoinGroupResponse
    from odradek.protocol.message_types.leave_group import LeaveGroupRequest, LeaveGroupResponse
    from odradek.protocol.message_types.list_offsets import ListOffsetsRequest, ListOffsetsResponse
    from odradek.protocol.message_types.metadata import MetadataRequest, MetadataResponse
    from odradek.protocol.message_types.offset_commit import OffsetCommitRequest, OffsetCommitResponse
    from odradek.protocol.message_types.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
    from odradek.protocol.message_types.produce import ProduceResponse
    from odradek.protocol.message_types.sync_group import SyncGroupRequest, SyncGroupResponse
    from odradek.protocol.produce_request import ProduceRequest

# Key types of FindCoordinator.
GROUP: Final = 0
TRANSACTIONAL_ID: Final = 1
# Timestamps of ListOffsets that stand for the ends of a log.
EARLIEST_TIMESTAMP: Final = -2
LATEST_TIMESTAMP: Final = -1

# Newer versions are for brokers.
ADD_PARTITIONS_TO_TXN: Final["Api[AddPartitionsToTxnRequest, AddPartitionsToTxnResponse]"] = Api(
    ApiKey.ADD_PARTITIONS_TO_TXN, 0, 3
)
# With version 5, each transaction has an epoch of its own (KIP-890).
END_TXN: Final["Api[EndTxnRequest, EndTxnResponse]"] = Api(ApiKey.END_TXN, 0, 4)
# Newer versions have topic ids instead of names.
FETCH: Final["Api[FetchRequest, FetchResponse]"] = Api(ApiKey.FETCH, 4, 12)
# Version 0 supports groups only.
FIND_COORDINATOR: Final["Api[FindCoordinatorRequest, FindCoordinatorResponse]"] = Api(ApiKey.FIND_COORDINATOR, 1)
HEARTBEAT: Final["Api[HeartbeatRequest, HeartbeatResponse]"] = Api(ApiKey.HEARTBEAT)
INIT_PRODUCER_ID: Final["Api[InitProducerIdRequest, InitProducerIdResponse]"] = Api(ApiKey.INIT_PRODUCER_ID)
JOIN_GROUP: Final["Api[JoinGroupRequest, JoinGroupResponse]"] = Api(ApiKey.JOIN_GROUP)
LEAVE_GROUP: Final["Api[LeaveGroupRequest, LeaveGroupResponse]"] = Api(ApiKey.LEAVE_GROUP)
LIST_OFFSETS: Final["Api[ListOffsetsRequest, ListOffsetsResponse]"] = Api(ApiKey.LIST_OFFSETS)
# Version 4 added allow_auto_topic_creation.
METADATA: Final["Api[MetadataRequest, MetadataResponse]"] = Api(ApiKey.METADATA, 4)
# Newer versions of these two have topic ids instead of names.
OFFSET_COMMIT: Final["Api[OffsetCommitRequest, OffsetCommitResponse]"] = Api(ApiKey.OFFSET_COMMIT, 2, 9)
OFFSET_FETCH: Final["Api[OffsetFetchRequest, OffsetFetchResponse]"] = Api(ApiKey.OFFSET_FETCH, 2, 9)
# From version 12 on, a broker adds partitions to transactions by itself. From 13 on, topics have ids.
PRODUCE: Final["Api[ProduceRequest, ProduceResponse]"] = Api(ApiKey.PRODUCE, 3, 11)
SYNC_GROUP: Final["Api[SyncGroupRequest, SyncGroupResponse]"] = Api(ApiKey.SYNC_GROUP)
