"""The coordinators' records, a group's by the version of the key. Written by tools/generate_messages.py."""

from typing import Final

KEYS: Final[dict[int, str]] = {
    3: """
ConsumerGroupMetadataKey 0
 group_id string
""",
    4: """
ConsumerGroupPartitionMetadataKey 0
 group_id string
""",
    5: """
ConsumerGroupMemberMetadataKey 0
 group_id string
 member_id string
""",
    6: """
ConsumerGroupTargetAssignmentMetadataKey 0
 group_id string
""",
    7: """
ConsumerGroupTargetAssignmentMemberKey 0
 group_id string
 member_id string
""",
    8: """
ConsumerGroupCurrentMemberAssignmentKey 0
 group_id string
 member_id string
""",
    10: """
ShareGroupMemberMetadataKey 0
 group_id string
 member_id string
""",
    11: """
ShareGroupMetadataKey 0
 group_id string
""",
    12: """
ShareGroupTargetAssignmentMetadataKey 0
 group_id string
""",
    13: """
ShareGroupTargetAssignmentMemberKey 0
 group_id string
 member_id string
""",
    14: """
ShareGroupCurrentMemberAssignmentKey 0
 group_id string
 member_id string
""",
    15: """
ShareGroupStatePartitionMetadataKey 0
 group_id string
""",
    16: """
ConsumerGroupRegularExpressionKey 0
 group_id string
 regular_expression string
""",
    17: """
StreamsGroupMetadataKey 0
 group_id string
""",
    19: """
StreamsGroupMemberMetadataKey 0
 group_id string
 member_id string
""",
    20: """
StreamsGroupTargetAssignmentMetadataKey 0
 group_id string
""",
    21: """
StreamsGroupTargetAssignmentMemberKey 0
 group_id string
 member_id string
""",
    22: """
StreamsGroupCurrentMemberAssignmentKey 0
 group_id string
 member_id string
""",
    23: """
StreamsGroupTopologyKey 0
 group_id string
""",
}

VALUES: Final[dict[int, str]] = {
    1: """
OffsetCommitValue 0-4 flexible 4+
 offset int64
 leader_epoch int32 3+ = -1
 metadata string
 commit_timestamp int64
 expire_timestamp int64 1 = -1
 topic_id uuid 4+ tag 0
""",
    2: """
GroupMetadataValue 0-4 flexible 4+
 protocol_type string
 generation int32
 protocol string null
 leader string null
 current_state_timestamp int64 2+ = -1
 members []MemberMetadata
  member_id string
  group_instance_id string 3+ null 3+ = null
  client_id string
  client_host string
  rebalance_timeout int32 1+ = -1
  session_timeout int32
  subscription bytes
  assignment bytes
""",
    3: """
ConsumerGroupMetadataValue 0 flexible 0+
 epoch int32
 metadata_hash int64 tag 0 = 0
""",
    4: """
ConsumerGroupPartitionMetadataValue 0 flexible 0+
 topics []TopicMetadata
  topic_id uuid
  topic_name string
  num_partitions int32
  partition_metadata []PartitionMetadata
   partition int32
   racks []string
""",
    5: """
ConsumerGroupMemberMetadataValue 0 flexible 0+
 instance_id string null
 rack_id string null
 client_id string
 client_host string
 subscribed_topic_names []string
 subscribed_topic_regex string null
 rebalance_timeout_ms int32 = -1
 server_assignor string null
 classic_member_metadata ClassicMemberMetadata null tag 0
  session_timeout_ms int32
  supported_protocols []ClassicProtocol
   name string
   metadata bytes
""",
    6: """
ConsumerGroupTargetAssignmentMetadataValue 0 flexible 0+
 assignment_epoch int32
 assignment_timestamp int64 tag 0 = 0
""",
    7: """
ConsumerGroupTargetAssignmentMemberValue 0 flexible 0+
 topic_partitions []TopicPartition
  topic_id uuid
  partitions []int32
""",
    8: """
ConsumerGroupCurrentMemberAssignmentValue 0 flexible 0+
 member_epoch int32
 previous_member_epoch int32
 state int8
 assigned_partitions []TopicPartitions
  topic_id uuid
  partitions []int32
  assignment_epochs []int32 null tag 0
 partitions_pending_revocation []TopicPartitions
  topic_id uuid
  partitions []int32
  assignment_epochs []int32 null tag 0
""",
    10: """
ShareGroupMemberMetadataValue 0 flexible 0+
 rack_id string null
 client_id string
 client_host string
 subscribed_topic_names []string
""",
    11: """
ShareGroupMetadataValue 0 flexible 0+
 epoch int32
 metadata_hash int64
""",
    12: """
ShareGroupTargetAssignmentMetadataValue 0 flexible 0+
 assignment_epoch int32
 assignment_timestamp int64 tag 0 = 0
""",
    13: """
ShareGroupTargetAssignmentMemberValue 0 flexible 0+
 topic_partitions []TopicPartition
  topic_id uuid
  partitions []int32
""",
    14: """
ShareGroupCurrentMemberAssignmentValue 0 flexible 0+
 member_epoch int32
 previous_member_epoch int32
 state int8
 assigned_partitions []TopicPartitions
  topic_id uuid
  partitions []int32
""",
    15: """
ShareGroupStatePartitionMetadataValue 0 flexible 0+
 initializing_topics []TopicPartitionsInfo
  topic_id uuid
  topic_name string
  partitions []int32
 initialized_topics []TopicPartitionsInfo
  topic_id uuid
  topic_name string
  partitions []int32
 deleting_topics []TopicInfo
  topic_id uuid
  topic_name string
""",
    16: """
ConsumerGroupRegularExpressionValue 0 flexible 0+
 topics []string
 version int64
 timestamp int64
""",
    17: """
StreamsGroupMetadataValue 0 flexible 0+
 epoch int32
 metadata_hash int64
 validated_topology_epoch int32 tag 0 = -1
 last_assignment_configs []LastAssignmentConfig null tag 1
  key string
  value string
 stored_description_topology_epoch int32 tag 2 = -1
 failed_description_topology_epoch int32 tag 3 = -1
""",
    19: """
StreamsGroupMemberMetadataValue 0 flexible 0+
 instance_id string null
 rack_id string null
 client_id string
 client_host string
 rebalance_timeout_ms int32 = -1
 topology_epoch int32
 process_id string
 user_endpoint Endpoint null = null
  host string
  port uint16
 client_tags []KeyValue
  key string
  value string
""",
    20: """
StreamsGroupTargetAssignmentMetadataValue 0 flexible 0+
 assignment_epoch int32
 assignment_timestamp int64 tag 0 = 0
""",
    21: """
StreamsGroupTargetAssignmentMemberValue 0 flexible 0+
 active_tasks []TaskIds
  subtopology_id string
  partitions []int32
 standby_tasks []TaskIds
  subtopology_id string
  partitions []int32
 warmup_tasks []TaskIds
  subtopology_id string
  partitions []int32
""",
    22: """
StreamsGroupCurrentMemberAssignmentValue 0 flexible 0+
 member_epoch int32
 previous_member_epoch int32
 state int8
 active_tasks []TaskIds
  subtopology_id string
  partitions []int32
  assignment_epochs []int32 null tag 0
 standby_tasks []TaskIds
  subtopology_id string
  partitions []int32
  assignment_epochs []int32 null tag 0
 warmup_tasks []TaskIds
  subtopology_id string
  partitions []int32
  assignment_epochs []int32 null tag 0
 active_tasks_pending_revocation []TaskIds
  subtopology_id string
  partitions []int32
  assignment_epochs []int32 null tag 0
 standby_tasks_pending_revocation []TaskIds
  subtopology_id string
  partitions []int32
  assignment_epochs []int32 null tag 0
 warmup_tasks_pending_revocation []TaskIds
  subtopology_id string
  partitions []int32
  assignment_epochs []int32 null tag 0
""",
    23: """
StreamsGroupTopologyValue 0 flexible 0+
 epoch int32
 subtopologies []Subtopology
  subtopology_id string
  source_topics []string
  source_topic_regex []string
  state_changelog_topics []TopicInfo
   name string
   partitions int32
   replication_factor int16
   topic_configs []TopicConfig
    key string
    value string
  repartition_sink_topics []string
  repartition_source_topics []TopicInfo
   name string
   partitions int32
   replication_factor int16
   topic_configs []TopicConfig
    key string
    value string
  copartition_groups []CopartitionGroup
   source_topics []int16
   source_topic_regex []int16
   repartition_source_topics []int16
""",
}

SHARE_STATE_KEYS: Final[dict[int, str]] = {
    0: """
ShareSnapshotKey 0
 group_id string
 topic_id uuid
 partition int32
""",
    1: """
ShareUpdateKey 0
 group_id string
 topic_id uuid
 partition int32
""",
}

SHARE_STATE_VALUES: Final[dict[int, str]] = {
    0: """
ShareSnapshotValue 0 flexible 0+
 snapshot_epoch int32
 state_epoch int32
 leader_epoch int32
 start_offset int64
 delivery_complete_count int32 tag 0 = -1
 create_timestamp int64
 write_timestamp int64
 state_batches []StateBatch
  first_offset int64
  last_offset int64
  delivery_state int8
  delivery_count int16
""",
    1: """
ShareUpdateValue 0 flexible 0+
 snapshot_epoch int32
 leader_epoch int32
 start_offset int64
 delivery_complete_count int32 tag 0 = -1
 state_batches []StateBatch
  first_offset int64
  last_offset int64
  delivery_state int8
  delivery_count int16
""",
}

TRANSACTION_VALUE: Final = """
TransactionLogValue 0-1 flexible 1+
 producer_id int64
 previous_producer_id int64 1+ tag 0 = -1
 next_producer_id int64 1+ tag 1 = -1
 producer_epoch int16
 next_producer_epoch int16 1+ tag 3 = -1
 transaction_timeout_ms int32
 transaction_status int8
 transaction_partitions []PartitionsSchema null
  topic string
  partition_ids []int32
 transaction_last_update_timestamp_ms int64
 transaction_start_timestamp_ms int64
 client_transaction_version int16 1+ tag 2 = 0
"""
