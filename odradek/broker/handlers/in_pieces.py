"""Which requests are handled in pieces if they are large, and where their items are (``broker.pieces``).

The ``LARGE_ANSWERS`` are encoded in slices though their requests are small. An API without a row has no items that could be
handled by themselves. Its large requests are decoded and encoded in slices, and handled at once.
"""

from typing import Final

from odradek.broker.pieces import Pieces, Repeated
from odradek.protocol.api_keys import ApiKey

_TOPICS: Final = ("topics", "partitions")
# An item that is written to a log, or for which hundreds of answers are made, takes up to a tenth of a millisecond.
_FEW: Final = 50

# It is large every day, and has ways of its own.
NEVER_SLICED: Final = frozenset({ApiKey.PRODUCE})
WITH_RECORDS: Final = frozenset({ApiKey.FETCH})
# Small requests of these may have large answers.
LARGE_ANSWERS: Final = frozenset(
    {
        *(ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.DELETE_ACLS, ApiKey.OFFSET_FETCH),
        *(ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS, ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.LIST_CONFIG_RESOURCES),
        *(api_key for api_key in ApiKey if api_key.name.startswith("DESCRIBE_")),
        *(ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP),
        ApiKey.ELECT_LEADERS,
    }
)
IN_PIECES: Final[dict[ApiKey, Pieces]] = {
    ApiKey.LIST_OFFSETS: Pieces(_TOPICS, _TOPICS),
    ApiKey.METADATA: Pieces(("topics",), ("topics",), 100, Repeated.ONCE),
    ApiKey.OFFSET_COMMIT: Pieces(_TOPICS, _TOPICS),
    ApiKey.OFFSET_FETCH: Pieces(("groups", "topics", "partition_indexes"), ("groups", "topics", "partitions")),
    ApiKey.FIND_COORDINATOR: Pieces(("coordinator_keys",), ("coordinators",)),
    ApiKey.DESCRIBE_GROUPS: Pieces(("groups",), ("groups",), _FEW, Repeated.ALIKE),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Pieces(_TOPICS, _TOPICS),
    ApiKey.ADD_PARTITIONS_TO_TXN: Pieces(("transactions",), ("results_by_transaction",), _FEW),
    ApiKey.WRITE_TXN_MARKERS: Pieces(("markers", "topics", "partition_indexes"), ("markers", "topics", "partitions"), _FEW),
    ApiKey.TXN_OFFSET_COMMIT: Pieces(_TOPICS, _TOPICS),
    ApiKey.DESCRIBE_CONFIGS: Pieces(("resources",), ("results",), 10, Repeated.ALIKE),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Pieces(("dirs", "topics", "partitions"), ("results", "partitions")),
    ApiKey.DELETE_GROUPS: Pieces(("groups_names",), ("results",), _FEW, Repeated.ONCE),
    ApiKey.ELECT_LEADERS: Pieces(("topic_partitions", "partitions"), ("replica_election_results", "partition_result")),
    ApiKey.OFFSET_DELETE: Pieces(_TOPICS, _TOPICS),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Pieces(_TOPICS, ("responses", "partitions")),
    ApiKey.DESCRIBE_QUORUM: Pieces(_TOPICS, _TOPICS),
    ApiKey.DESCRIBE_PRODUCERS: Pieces(("topics", "partition_indexes"), _TOPICS),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Pieces(("group_ids",), ("groups",), _FEW, Repeated.ALIKE),
    ApiKey.DESCRIBE_TRANSACTIONS: Pieces(("transactional_ids",), ("transaction_states",), _FEW, Repeated.ALIKE),
}
