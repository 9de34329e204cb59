"""CreateTopics up to version 7. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class CreatableReplicaAssignment(NamedTuple):
    """A struct of the CreateTopics request."""

    partition_index: int = 0
    broker_ids: Sequence[int] = ()


class CreatableTopicConfig(NamedTuple):
    """A struct of the CreateTopics request."""

    name: str = ""
    value: str | None = None


class CreatableTopic(NamedTuple):
    """A struct of the CreateTopics request."""

    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: Sequence[CreatableReplicaAssignment] = ()
    configs: Sequence[CreatableTopicConfig] = ()


class CreateTopicsRequest(NamedTuple):
    """The CreateTopics request."""

    topics: Sequence[CreatableTopic] = ()
    timeout_ms: int = 60000
    validate_only: bool = False


class CreatableTopicConfigs(NamedTuple):
    """A struct of the CreateTopics response."""

    name: str = ""
    value: str | None = None
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


class CreatableTopicResult(NamedTuple):
    """A struct of the CreateTopics response."""

    name: str = ""
    topic_id: UUID | None = None
    error_code: int = 0
    error_message: str | None = None
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Sequence[CreatableTopicConfigs] | None = ()


class CreateTopicsResponse(NamedTuple):
    """The CreateTopics response."""

    throttle_time_ms: int = 0
    topics: Sequence[CreatableTopicResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "CreatableReplicaAssignment": CreatableReplicaAssignment,
    "CreatableTopicConfig": CreatableTopicConfig,
    "CreatableTopic": CreatableTopic,
    "CreateTopicsRequest": CreateTopicsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "CreatableTopicConfigs": CreatableTopicConfigs,
    "CreatableTopicResult": CreatableTopicResult,
    "CreateTopicsResponse": CreateTopicsResponse,
}

REQUEST_FIELDS: Final = """
CreateTopicsRequest 2-7 flexible 5+
 topics []CreatableTopic
  name string
  num_partitions int32
  replication_factor int16
  assignments []CreatableReplicaAssignment
   partition_index int32
   broker_ids []int32
  configs []CreatableTopicConfig
   name string
   value string null
 timeout_ms int32 = 60000
 validate_only bool = false
"""
RESPONSE_FIELDS: Final = """
CreateTopicsResponse 2-7 flexible 5+
 throttle_time_ms int32
 topics []CreatableTopicResult
  name string
  topic_id uuid 7+
  error_code int16
  error_message string null
  topic_config_error_code int16 5+ tag 0
  num_partitions int32 5+ = -1
  replication_factor int16 5+ = -1
  configs []CreatableTopicConfigs 5+ null 5+
   name string 5+
   value string 5+ null 5+
   read_only bool 5+
   config_source int8 5+ = -1
   is_sensitive bool 5+
"""
