"""The APIs that the commands use, in the versions that can say what the commands need."""

from typing import Any, Final

from odradek.client.api import Api
from odradek.protocol.api_keys import ApiKey

# The newest versions of these two have ids of topics in place of names.
OFFSET_COMMIT: Final[Api[Any, Any]] = Api(ApiKey.OFFSET_COMMIT, 2, 9)
OFFSET_FETCH: Final[Api[Any, Any]] = Api(ApiKey.OFFSET_FETCH, 2, 9)

CONSUMER_GROUP_DESCRIBE: Final[Api[Any, Any]] = Api(ApiKey.CONSUMER_GROUP_DESCRIBE)
CREATE_TOPICS: Final[Api[Any, Any]] = Api(ApiKey.CREATE_TOPICS)
DELETE_GROUPS: Final[Api[Any, Any]] = Api(ApiKey.DELETE_GROUPS)
DELETE_TOPICS: Final[Api[Any, Any]] = Api(ApiKey.DELETE_TOPICS)
DESCRIBE_CONFIGS: Final[Api[Any, Any]] = Api(ApiKey.DESCRIBE_CONFIGS)
DESCRIBE_GROUPS: Final[Api[Any, Any]] = Api(ApiKey.DESCRIBE_GROUPS)
DESCRIBE_PRODUCERS: Final[Api[Any, Any]] = Api(ApiKey.DESCRIBE_PRODUCERS)
DESCRIBE_TRANSACTIONS: Final[Api[Any, Any]] = Api(ApiKey.DESCRIBE_TRANSACTIONS)
# Version 0 knows groups only.
FIND_COORDINATOR: Final[Api[Any, Any]] = Api(ApiKey.FIND_COORDINATOR, 1)
INIT_PRODUCER_ID: Final[Api[Any, Any]] = Api(ApiKey.INIT_PRODUCER_ID, 2)
LIST_GROUPS: Final[Api[Any, Any]] = Api(ApiKey.LIST_GROUPS)
LIST_OFFSETS: Final[Api[Any, Any]] = Api(ApiKey.LIST_OFFSETS)
LIST_TRANSACTIONS: Final[Api[Any, Any]] = Api(ApiKey.LIST_TRANSACTIONS)
LIST_TRANSACTIONS_BY_DURATION: Final[Api[Any, Any]] = Api(ApiKey.LIST_TRANSACTIONS, 1)
LIST_TRANSACTIONS_BY_PATTERN: Final[Api[Any, Any]] = Api(ApiKey.LIST_TRANSACTIONS, 2)
# Version 4 brought allow_auto_topic_creation.
METADATA: Final[Api[Any, Any]] = Api(ApiKey.METADATA, 4)
WRITE_TXN_MARKERS: Final[Api[Any, Any]] = Api(ApiKey.WRITE_TXN_MARKERS, 1)
