"""Each API refuses a client without rights, by the code that Kafka gives, and serves one that has what it needs."""

from importlib import import_module
from uuid import UUID

from odradek.broker.api import SERVED, load_module
from odradek.broker.api.controller import SERVED as SERVED_BY_CONTROLLERS
from odradek.broker.api.controller import module_of
from odradek.broker.security.acl.rules import allow_all
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.streams_group_heartbeat import Subtopology, Topology
from odradek.protocol.messages import messages
from odradek.timing.reply import Reply
from tests.broker.api.acl_requests import creation, wanted
from tests.broker.security.acl.bed import DENIED, OPEN, Secured, batch, codes_in
from tests.cases import each_case
from tests.requests import fields_of

TOPIC, GROUP, ID, CLUSTER = (
    ErrorCode[f"{kind}_AUTHORIZATION_FAILED"] for kind in ("TOPIC", "GROUP", "TRANSACTIONAL_ID", "CLUSTER")
)
ALL_OF_CLUSTER = "CLUSTER kafka-cluster"


K = ApiKey
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
STATE_APIS = [api_key for api_key in ApiKey if "SHARE_GROUP_STATE" in api_key.name]
# API, version, request, the code for a client without rights, what the client needs.
CASES = [
    (K.PRODUCE, 12, {"acks": -1, "topics": [("t", [(0, batch())])]}, TOPIC, ["WRITE TOPIC t"]),
    (
        K.PRODUCE,
        12,
        {"acks": -1, "transactional_id": "x", "topics": [("t", [(0, batch(is_transactional=True))])]},
        ID,
        ["WRITE TOPIC t", "WRITE TRANSACTIONAL_ID x"],
    ),
    (K.FETCH, 12, {"topics": [{"topic": "t", "partitions": [{"partition_max_bytes": 9}]}]}, TOPIC, ["READ TOPIC t"]),
    (K.LIST_OFFSETS, None, {"topics": [{"name": "t", "partitions": [{}]}]}, TOPIC, ["DESCRIBE TOPIC t"]),
    (K.METADATA, None, {"topics": [{"name": "t"}]}, TOPIC, ["DESCRIBE TOPIC t"]),
    (
        K.OFFSET_COMMIT,
        9,
        {"group_id": "g", "topics": [{"name": "t", "partitions": [{}]}]},
        GROUP,
        ["READ GROUP g", "READ TOPIC t"],
    ),
    (
        K.OFFSET_FETCH,
        9,
        {"groups": [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}]},
        GROUP,
        ["DESCRIBE GROUP g", "DESCRIBE TOPIC t"],
    ),
    (K.FIND_COORDINATOR, None, {"coordinator_keys": ["g"]}, GROUP, ["DESCRIBE GROUP g"]),
    (K.FIND_COORDINATOR, None, {"key_type": 1, "coordinator_keys": ["x"]}, ID, ["DESCRIBE TRANSACTIONAL_ID x"]),
    (K.FIND_COORDINATOR, 3, {"key_type": 1, "coordinator_keys": ["x"]}, ID, ["DESCRIBE TRANSACTIONAL_ID x"]),
    (K.JOIN_GROUP, None, {"group_id": "g"}, GROUP, ["READ GROUP g"]),
    (K.HEARTBEAT, None, {"group_id": "g"}, GROUP, ["READ GROUP g"]),
    (K.LEAVE_GROUP, None, {"group_id": "g"}, GROUP, ["READ GROUP g"]),
    (K.SYNC_GROUP, None, {"group_id": "g", "protocol_type": "c", "protocol_name": "r"}, GROUP, ["READ GROUP g"]),
    (K.DESCRIBE_GROUPS, None, {"groups": ["g"]}, GROUP, ["DESCRIBE GROUP g"]),
    (K.CREATE_TOPICS, None, {"topics": [{"name": "n", "num_partitions": 1, "replication_factor": 1}]}, TOPIC, ["CREATE TOPIC n"]),
    (K.DELETE_TOPICS, None, {"topics": [{"name": "t"}]}, TOPIC, ["DELETE TOPIC t"]),
    (K.DELETE_RECORDS, None, {"topics": [{"name": "t", "partitions": [{}]}]}, TOPIC, ["DELETE TOPIC t"]),
    (K.INIT_PRODUCER_ID, None, {"producer_id": -1, "producer_epoch": -1}, CLUSTER, [f"IDEMPOTENT_WRITE {ALL_OF_CLUSTER}"]),
    (K.INIT_PRODUCER_ID, None, {"producer_id": -1, "producer_epoch": -1}, CLUSTER, ["WRITE TOPIC some*"]),
    (
        K.INIT_PRODUCER_ID,
        None,
        {"transactional_id": "x", "transaction_timeout_ms": 1, "producer_id": -1, "producer_epoch": -1},
        ID,
        ["WRITE TRANSACTIONAL_ID x"],
    ),
    (K.OFFSET_FOR_LEADER_EPOCH, None, {"topics": [{"topic": "t", "partitions": [{}]}]}, TOPIC, ["DESCRIBE TOPIC t"]),
    (
        K.ADD_PARTITIONS_TO_TXN,
        3,
        {"transactions": [{"transactional_id": "x", "topics": [{"name": "t", "partitions": [0]}]}]},
        ID,
        ["WRITE TRANSACTIONAL_ID x", "WRITE TOPIC t"],
    ),
    (K.ADD_PARTITIONS_TO_TXN, 5, {}, CLUSTER, [f"CLUSTER_ACTION {ALL_OF_CLUSTER}"]),
    (K.ADD_OFFSETS_TO_TXN, None, {"transactional_id": "x", "group_id": "g"}, ID, ["WRITE TRANSACTIONAL_ID x", "READ GROUP g"]),
    (K.END_TXN, None, {"transactional_id": "x"}, ID, ["WRITE TRANSACTIONAL_ID x"]),
    (
        K.WRITE_TXN_MARKERS,
        None,
        {"markers": [{"topics": [{"name": "t", "partition_indexes": [0]}]}]},
        CLUSTER,
        [f"ALTER {ALL_OF_CLUSTER}"],
    ),
    *(
        (
            api_key,
            None,
            {"group_id": "g", "topics": [{"partitions": [{"partition": 0}]}]},
            CLUSTER,
            [f"CLUSTER_ACTION {ALL_OF_CLUSTER}"],
        )
        for api_key in (
            K.INITIALIZE_SHARE_GROUP_STATE,
            K.READ_SHARE_GROUP_STATE,
            K.WRITE_SHARE_GROUP_STATE,
            K.DELETE_SHARE_GROUP_STATE,
            K.READ_SHARE_GROUP_STATE_SUMMARY,
        )
    ),
    (
        K.FIND_COORDINATOR,
        None,
        {"key_type": 2, "coordinator_keys": ["g:AQIDBAUGBwgJCgsMDQ4PEA:0"]},
        CLUSTER,
        [f"CLUSTER_ACTION {ALL_OF_CLUSTER}"],
    ),
    (
        K.TXN_OFFSET_COMMIT,
        5,
        {"transactional_id": "x", "group_id": "g", "topics": [{"name": "t", "partitions": [{}]}]},
        ID,
        ["WRITE TRANSACTIONAL_ID x", "READ GROUP g", "READ TOPIC t"],
    ),
    (
        K.DESCRIBE_ACLS,
        None,
        {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1},
        CLUSTER,
        [f"DESCRIBE {ALL_OF_CLUSTER}"],
    ),
    (K.CREATE_ACLS, None, {"creations": [creation("allow User:b READ TOPIC t")]}, CLUSTER, [f"ALTER {ALL_OF_CLUSTER}"]),
    (K.DELETE_ACLS, None, {"filters": [wanted(name="none")]}, CLUSTER, [f"ALTER {ALL_OF_CLUSTER}"]),
    *(
        (
            K.DESCRIBE_CONFIGS,
            None,
            {"resources": [{"resource_type": kind, "resource_name": name}]},
            code,
            [f"DESCRIBE_CONFIGS {resource}"],
        )
        for kind, name, code, resource in (
            (2, "t", TOPIC, "TOPIC t"),
            (4, "1", CLUSTER, ALL_OF_CLUSTER),
            (32, "g", GROUP, "GROUP g"),
        )
    ),
    *(
        (api_key, None, {"resources": [{"resource_type": kind, "resource_name": name}]}, code, [f"ALTER_CONFIGS {resource}"])
        for api_key in (K.ALTER_CONFIGS, K.INCREMENTAL_ALTER_CONFIGS)
        for kind, name, code, resource in (
            (2, "t", TOPIC, "TOPIC t"),
            (4, "1", CLUSTER, ALL_OF_CLUSTER),
            (32, "g", GROUP, "GROUP g"),
        )
    ),
    (
        K.ALTER_REPLICA_LOG_DIRS,
        None,
        {"dirs": [{"path": "/x", "topics": [{"name": "t", "partitions": [0]}]}]},
        CLUSTER,
        [f"ALTER {ALL_OF_CLUSTER}"],
    ),
    (K.DESCRIBE_LOG_DIRS, None, {"topics": None}, CLUSTER, [f"DESCRIBE {ALL_OF_CLUSTER}"]),
    (K.CREATE_PARTITIONS, None, {"topics": [{"name": "t", "count": 2, "assignments": None}]}, TOPIC, ["ALTER TOPIC t"]),
    (
        K.CREATE_DELEGATION_TOKEN,
        None,
        {"owner_principal_type": "User", "owner_principal_name": "bob"},
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        ["CREATE_TOKENS USER User:bob"],
    ),
    (K.DELETE_GROUPS, None, {"groups_names": ["g"]}, GROUP, ["DELETE GROUP g"]),
    (K.ELECT_LEADERS, None, {"topic_partitions": [{"topic": "t", "partitions": [0]}]}, CLUSTER, [f"ALTER {ALL_OF_CLUSTER}"]),
    # The answer for a missing group comes before those for the topics.
    (K.OFFSET_DELETE, None, {"group_id": "g", "topics": [{"name": "t", "partitions": [{}]}]}, GROUP, ["DELETE GROUP g"]),
    (
        K.ALTER_PARTITION_REASSIGNMENTS,
        None,
        {"topics": [{"name": "t", "partitions": [{}]}]},
        CLUSTER,
        [f"ALTER {ALL_OF_CLUSTER}"],
    ),
    (K.LIST_PARTITION_REASSIGNMENTS, None, {"topics": None}, CLUSTER, [f"DESCRIBE {ALL_OF_CLUSTER}"]),
    (K.DESCRIBE_QUORUM, None, {}, CLUSTER, [f"DESCRIBE {ALL_OF_CLUSTER}"]),
    (K.UPDATE_FEATURES, None, {}, CLUSTER, [f"ALTER {ALL_OF_CLUSTER}"]),
    (K.DESCRIBE_PRODUCERS, None, {"topics": [{"name": "t", "partition_indexes": [0]}]}, TOPIC, ["READ TOPIC t"]),
    (
        K.ALTER_CLIENT_QUOTAS,
        None,
        {"entries": [{"entity": [{"entity_type": "user"}]}]},
        CLUSTER,
        [f"ALTER_CONFIGS {ALL_OF_CLUSTER}"],
    ),
    (K.DESCRIBE_CLIENT_QUOTAS, None, {}, CLUSTER, [f"DESCRIBE_CONFIGS {ALL_OF_CLUSTER}"]),
    (K.ALTER_USER_SCRAM_CREDENTIALS, None, {"deletions": [{"name": "u", "mechanism": 1}]}, CLUSTER, [f"ALTER {ALL_OF_CLUSTER}"]),
    (K.DESCRIBE_USER_SCRAM_CREDENTIALS, None, {"users": [{"name": "u"}]}, CLUSTER, [f"DESCRIBE {ALL_OF_CLUSTER}"]),
    (K.UNREGISTER_BROKER, None, {"broker_id": 7}, CLUSTER, [f"ALTER {ALL_OF_CLUSTER}"]),
    (K.UNREGISTER_CONTROLLER, None, {"controller_id": 7}, CLUSTER, [f"ALTER {ALL_OF_CLUSTER}"]),
    (K.ADD_RAFT_VOTER, None, {}, CLUSTER, [f"ALTER {ALL_OF_CLUSTER}"]),
    (K.REMOVE_RAFT_VOTER, None, {}, CLUSTER, [f"ALTER {ALL_OF_CLUSTER}"]),
    (K.DESCRIBE_TRANSACTIONS, None, {"transactional_ids": ["x"]}, ID, ["DESCRIBE TRANSACTIONAL_ID x"]),
    (
        K.CONSUMER_GROUP_HEARTBEAT,
        None,
        {"group_id": "g", "member_id": "m", "rebalance_timeout_ms": 9, "subscribed_topic_names": ["t"], "topic_partitions": []},
        GROUP,
        ["READ GROUP g", "DESCRIBE TOPIC t"],
    ),
    (K.CONSUMER_GROUP_DESCRIBE, None, {"group_ids": ["g"]}, GROUP, ["DESCRIBE GROUP g"]),
    (K.LIST_CONFIG_RESOURCES, None, {}, CLUSTER, [f"DESCRIBE_CONFIGS {ALL_OF_CLUSTER}"]),
    (K.DESCRIBE_TOPIC_PARTITIONS, None, {"topics": [{"name": "t"}]}, TOPIC, ["DESCRIBE TOPIC t"]),
    (
        K.SHARE_GROUP_HEARTBEAT,
        None,
        {"group_id": "g", "member_id": "m", "subscribed_topic_names": ["t"]},
        GROUP,
        ["READ GROUP g", "DESCRIBE TOPIC t"],
    ),
    (K.SHARE_GROUP_DESCRIBE, None, {"group_ids": ["g"]}, GROUP, ["DESCRIBE GROUP g"]),
    (
        K.STREAMS_GROUP_HEARTBEAT,
        None,
        {
            "group_id": "g",
            "member_id": "m",
            "rebalance_timeout_ms": 9,
            "topology": Topology(subtopologies=[Subtopology(subtopology_id="0", source_topics=["t"])]),
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
        },
        GROUP,
        ["READ GROUP g", "DESCRIBE TOPIC t"],
    ),
    (K.STREAMS_GROUP_DESCRIBE, None, {"group_ids": ["g"]}, GROUP, ["DESCRIBE GROUP g"]),
    (K.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, None, {"group_id": "g", "member_id": "m"}, GROUP, ["READ GROUP g"]),
    # The topics of these two have ids: test_share_topics.py.
    (K.SHARE_FETCH, None, {"group_id": "g", "member_id": "m"}, GROUP, ["READ GROUP g"]),
    (K.SHARE_ACKNOWLEDGE, None, {"group_id": "g", "member_id": "m", "share_session_epoch": 1}, GROUP, ["READ GROUP g"]),
    (
        K.DESCRIBE_SHARE_GROUP_OFFSETS,
        None,
        {"groups": [{"group_id": "g", "topics": [{"topic_name": "t", "partitions": [0]}]}]},
        GROUP,
        ["DESCRIBE GROUP g", "DESCRIBE TOPIC t"],
    ),
    (
        K.ALTER_SHARE_GROUP_OFFSETS,
        None,
        {"group_id": "g", "topics": [{"topic_name": "t", "partitions": [{}]}]},
        GROUP,
        ["READ GROUP g", "READ TOPIC t"],
    ),
    (K.SHARE_FETCH, None, {"group_id": "g", "member_id": MEMBER}, GROUP, ["READ GROUP g"]),
    (K.SHARE_ACKNOWLEDGE, None, {"group_id": "g", "member_id": MEMBER}, GROUP, ["READ GROUP g"]),
    *(
        (api_key, None, {"group_id": "g", "topics": [{"partitions": [{}]}]}, CLUSTER, [f"CLUSTER_ACTION {ALL_OF_CLUSTER}"])
        for api_key in STATE_APIS
    ),
    # The answer for a missing group comes before those for the topics.
    (K.DELETE_SHARE_GROUP_OFFSETS, None, {"group_id": "g", "topics": [{"topic_name": "t"}]}, GROUP, ["DELETE GROUP g"]),
]
# What these tell is what the client may know; they refuse nobody.
LEAVING_OUT = {K.LIST_GROUPS, K.LIST_TRANSACTIONS, K.DESCRIBE_CLUSTER, K.DESCRIBE_DELEGATION_TOKEN}


def named(case):
    api_key, version, _, code, needed = case
    return f"{api_key.name}-{version}-{code.name}-{needed[0]}"


@each_case("case", CASES, ids=named)
def test_a_client_without_rights_is_refused_and_one_with_what_it_needs_is_not(case):
    api_key, version, fields, code, needed = case
    fields = fields_of(api_key, fields)
    secured = Secured("t")
    assert codes_in(api_key, secured.ask(api_key, version, **fields)) == {code}
    for number, right in enumerate(needed):
        if number:
            found = codes_in(api_key, secured.ask(api_key, version, **fields))
            assert found & DENIED, f"{needed[:number]} are enough"
        secured.allow(right)
    answer = secured.ask(api_key, version, **fields)
    assert answer is not None
    assert not codes_in(api_key, answer) & DENIED


@each_case("case", CASES, ids=named)
def test_it_is_refused_so_whether_there_is_anything_or_not(case):
    """What a client is told that has no rights does not depend on what there is."""
    api_key, version, fields, _, _ = case
    fields = fields_of(api_key, fields)
    with_topic, without = (Secured(*topics).ask(api_key, version, **fields) for topics in (["t"], []))
    assert without_ids(with_topic) == without_ids(without)


def without_ids(response):
    """Ids of the brokers' own are made anew for each."""
    return response._replace(cluster_id="") if hasattr(response, "cluster_id") else response


def test_every_api_has_a_rule_and_a_case():
    assert {api_key for api_key in SERVED if load_module(api_key).rule is allow_all} == OPEN
    of_controllers = {api_key: import_module(module_of(api_key)).rule for api_key in SERVED_BY_CONTROLLERS}
    assert {api_key for api_key, rule in of_controllers.items() if rule is allow_all} == of_controllers.keys() & OPEN
    assert {case[0] for case in CASES} == SERVED.keys() - OPEN - LEAVING_OUT


async def test_a_super_user_may_do_everything():
    secured = Secured("t")
    for api_key, version, fields, _, _ in CASES:
        answer = secured.ask(api_key, version, "User:ANONYMOUS", **fields_of(api_key, fields))
        # One that waits was not refused.
        assert isinstance(answer, Reply) or not codes_in(api_key, answer) & DENIED, api_key.name


def test_everybody_may_do_everything_without_acls_if_that_is_configured():
    secured = Secured("t", allow_everyone_if_no_acl_found="true")
    request = {"topics": [messages(K.METADATA).MetadataRequestTopic(name="t")]}
    assert codes_in(K.METADATA, secured.ask(K.METADATA, **request)) == set()
    secured.deny("READ TOPIC t")
    assert codes_in(K.METADATA, secured.ask(K.METADATA, **request)) == {TOPIC}


def test_an_id_that_is_not_known_is_told_as_such():
    secured = Secured("t")
    unknown = UUID(int=7)
    asked = [messages(K.METADATA).MetadataRequestTopic(topic_id=each) for each in (unknown, secured.topic_id("t"))]
    told = {topic.topic_id: (topic.error_code, topic.name) for topic in secured.ask(K.METADATA, topics=asked).topics}
    assert told == {unknown: (ErrorCode.UNKNOWN_TOPIC_ID, None), secured.topic_id("t"): (TOPIC, None)}
