"""What makes the requests of the APIs, each from a version and what a seed draws."""

from collections.abc import Callable
from random import Random
from typing import Any, Final
from uuid import UUID

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from odradek.protocol.records import Record, build_batch
from odradek.protocol.texts import uuid_text
from tests.requests import request_of

K = ApiKey
TOPICS: Final = ("ta", "tb", "tab")
DELETABLE: Final = "td"
GROUPS: Final = ("ga", "gb")
PRINCIPALS: Final = ("alice", "bob")
# Whom delegation tokens are asked for.
OWNERS: Final = (*PRINCIPALS, "carol")
NAMES: Final = (*TOPICS, "absent", "not a name")
UNKNOWN_IDS: Final = {name: UUID(int=77 + number) for number, name in enumerate((*NAMES, DELETABLE))}
TRANSACTIONAL_IDS: Final = ("xa", "xb")
BOGUS: Final = {"producer_id": 999_999, "producer_epoch": 0}

# Makes the request of ids by names.
Make = Callable[[dict[str, UUID]], Any]


def of(api_key: ApiKey, struct: str, /, **fields: Any) -> Any:
    """A struct of a request."""
    return messages(api_key).classes["request"][struct](**fields)


def some(random: Random, names: tuple[str, ...]) -> list[str]:
    return random.sample(names, random.randint(1, len(names)))


def plain(**fields: Any) -> Callable[[ApiKey, int, Random], Make]:
    return lambda api_key, _version, _random: lambda _ids: request_of(api_key, **fields)


def by_names(field: str, name: str, names: tuple[str, ...] = NAMES, **others: Any) -> Callable[..., Make]:
    """A request about some names, whose partitions are all 0."""

    def maker(api_key: ApiKey, _version: int, random: Random) -> Make:
        chosen = some(random, names)
        top = {
            key: value(random) if callable(value) else value
            for key, value in others.items()
            if key in messages(api_key).request._fields
        }
        inner = {key: value for key, value in others.items() if key not in top}
        return lambda _ids: request_of(api_key, **{field: [{name: each, **inner} for each in chosen]}, **top)

    return maker


def shared(api_key: ApiKey, _version: int, random: Random) -> Make:
    """A request that begins a share session."""
    chosen, group_id = some(random, NAMES), random.choice(GROUPS)

    def make(ids: dict[str, UUID]) -> Any:
        # Kafka 4.4 fails at a topic without a name where it authorises those of a ShareFetch.
        known = [name for name in chosen if name in ids or api_key is not K.SHARE_FETCH]
        named = [uuid_text(ids.get(name, UNKNOWN_IDS[name])) for name in known]
        topics = [{"topic_id": each, "partitions": [{}]} for each in named]
        return request_of(api_key, group_id=group_id, member_id="m", share_session_epoch=0, topics=topics)

    return make


def strings(field: str, names: tuple[str, ...], **others: Any) -> Callable[..., Make]:
    def maker(api_key: ApiKey, _version: int, random: Random) -> Make:
        chosen = some(random, names)
        return lambda _ids: messages(api_key).request(**{field: chosen}, **others)

    return maker


def one(*names: str) -> Callable[[Random], str]:
    return lambda random: random.choice(names)


def of_one(**fields: Any) -> Callable[..., Make]:
    """A request with one group, transactional id and so on."""

    def maker(api_key: ApiKey, _version: int, random: Random) -> Make:
        made = request_of(api_key, **{key: value(random) if callable(value) else value for key, value in fields.items()})
        return lambda _ids: made

    return maker


def topic_fields(name: str, ids: dict[str, UUID], *, by_id: bool, field: str = "name") -> dict[str, Any]:
    return {"topic_id": ids.get(name, UNKNOWN_IDS[name])} if by_id else {field: name}


def produce(_api_key: ApiKey, version: int, random: Random) -> Make:
    chosen = some(random, NAMES)
    is_transactional = random.random() < 0.2
    batch = bytearray(build_batch([Record(timestamp=1, value=b"v")]))
    if is_transactional:
        # It is not to be appended: whoever may write is told that the checksum is wrong.
        batch[22] |= 0x10
    transactional_id = random.choice((*TRANSACTIONAL_IDS, None)) if is_transactional else None

    def make(ids: dict[str, UUID]) -> Any:
        keys = [ids.get(name, UNKNOWN_IDS[name]).bytes if version >= 13 else name for name in chosen]
        return messages(K.PRODUCE).request(transactional_id, -1, 1_000, [(key, [(0, bytes(batch))]) for key in keys])

    return make


def fetch(api_key: ApiKey, version: int, random: Random) -> Make:
    chosen = some(random, NAMES)
    replica = random.choice((-1, -1, -1, 7))

    def make(ids: dict[str, UUID]) -> Any:
        topics = [
            of(
                api_key,
                "FetchTopic",
                partitions=[of(api_key, "FetchPartition", partition_max_bytes=1)],
                **topic_fields(name, ids, by_id=version >= 13, field="topic"),
            )
            for name in chosen
        ]
        who = (
            {"replica_id": replica}
            if version < 15
            else {"replica_state": of(api_key, "ReplicaState", replica_id=replica, replica_epoch=1)}
        )
        return messages(api_key).request(topics=topics, session_epoch=-1, max_bytes=1, **who)

    return make


def metadata(api_key: ApiKey, version: int, random: Random) -> Make:
    chosen = random.choice((None, some(random, NAMES)))
    by_id = version >= 12 and random.random() < 0.4
    operations = random.random() < 0.5

    def make(ids: dict[str, UUID]) -> Any:
        topics = (
            None
            if chosen is None
            else [
                of(
                    api_key,
                    "MetadataRequestTopic",
                    **({"topic_id": ids.get(name, UNKNOWN_IDS[name])} if by_id else {"name": name}),
                )
                for name in chosen
            ]
        )
        return messages(api_key).request(
            topics=topics,
            allow_auto_topic_creation=version < 4,
            include_topic_authorized_operations=operations and version >= 8,
            include_cluster_authorized_operations=operations and 8 <= version <= 10,
        )

    return make


def offset_commit(api_key: ApiKey, version: int, random: Random) -> Make:
    chosen, group = some(random, NAMES), random.choice(GROUPS)

    def make(ids: dict[str, UUID]) -> Any:
        partition = of(api_key, "OffsetCommitRequestPartition", committed_offset=3, committed_metadata="")
        topics = [
            of(api_key, "OffsetCommitRequestTopic", partitions=[partition], **topic_fields(name, ids, by_id=version >= 10))
            for name in chosen
        ]
        return messages(api_key).request(group_id=group, topics=topics)

    return make


def txn_offset_commit(api_key: ApiKey, version: int, random: Random) -> Make:
    chosen, group, transactional_id = some(random, NAMES), random.choice(GROUPS), random.choice(TRANSACTIONAL_IDS)

    def make(ids: dict[str, UUID]) -> Any:
        partition = of(api_key, "TxnOffsetCommitRequestPartition", committed_offset=1, committed_metadata="")
        topics = [
            of(api_key, "TxnOffsetCommitRequestTopic", partitions=[partition], **topic_fields(name, ids, by_id=version >= 6))
            for name in chosen
        ]
        return messages(api_key).request(group_id=group, transactional_id=transactional_id, topics=topics, **BOGUS)

    return make


def offset_fetch(api_key: ApiKey, version: int, random: Random) -> Make:
    groups = some(random, GROUPS) if version >= 8 else [random.choice(GROUPS)]
    chosen = {group: None if version >= 2 and random.random() < 0.4 else some(random, NAMES) for group in groups}

    def make(ids: dict[str, UUID]) -> Any:
        return messages(api_key).request(
            groups=[
                of(
                    api_key,
                    "OffsetFetchRequestGroup",
                    group_id=group,
                    topics=None
                    if names is None
                    else [
                        of(
                            api_key,
                            "OffsetFetchRequestTopics",
                            partition_indexes=[0],
                            **topic_fields(name, ids, by_id=version >= 10),
                        )
                        for name in names
                    ],
                )
                for group, names in chosen.items()
            ]
        )

    return make


def delete_topics(api_key: ApiKey, version: int, random: Random) -> Make:
    """Of what is there only DELETABLE, which nothing else is asked of: it is made anew when it was deleted."""
    chosen = some(random, (DELETABLE, "absent", "not a name"))
    by_id = version >= 6 and random.random() < 0.5

    def make(ids: dict[str, UUID]) -> Any:
        return messages(api_key).request(
            topics=[
                of(api_key, "DeleteTopicState", **({"topic_id": ids.get(name, UNKNOWN_IDS[name])} if by_id else {"name": name}))
                for name in chosen
            ],
            timeout_ms=10_000,
        )

    return make


def find_coordinator(api_key: ApiKey, version: int, random: Random) -> Make:
    key_type = random.choice((0, 1)) if version else 0
    keys = some(random, TRANSACTIONAL_IDS if key_type else GROUPS)
    chosen = keys if version >= 4 else keys[:1]
    return lambda _ids: messages(api_key).request(key_type=key_type, coordinator_keys=chosen)


def add_partitions(api_key: ApiKey, version: int, random: Random) -> Make:
    chosen, transactional_id = some(random, NAMES), random.choice(TRANSACTIONAL_IDS)
    topics = [{"name": name, "partitions": [0]} for name in chosen]
    made = {"transactional_id": transactional_id, "topics": topics, "verify_only": version >= 4, **BOGUS}
    return lambda _ids: request_of(api_key, transactions=[made])


def configs(struct: str, **others: Any) -> Callable[..., Make]:
    def maker(api_key: ApiKey, _version: int, random: Random) -> Make:
        pool = [(2, name) for name in NAMES] + [(4, "1"), (32, "ga")]
        if api_key is not K.ALTER_CONFIGS:
            # A fresh Kafka has a dynamic default, which AlterConfigs would remove.
            pool.append((4, ""))
        fields: dict[str, Any] = {"configuration_keys": []}
        if api_key is not K.DESCRIBE_CONFIGS:
            extra = {"config_operation": 0} if api_key is K.INCREMENTAL_ALTER_CONFIGS else {}
            fields = {"configs": [of(api_key, "AlterableConfig", name="retention.ms", value=random.choice(("5", "x")), **extra)]}
        made = [of(api_key, struct, resource_type=kind, resource_name=name, **fields) for kind, name in random.sample(pool, 3)]
        return lambda _ids: messages(api_key).request(resources=made, **others)

    return maker


def create_token(api_key: ApiKey, version: int, random: Random) -> Make:
    owner = random.choice((None, *OWNERS)) if version >= 3 else None
    renewer = of(api_key, "CreatableRenewers", principal_type=random.choice(("User", "User", "Group")), principal_name="x")
    request = messages(api_key).request(
        owner_principal_type=None if owner is None else "User",
        owner_principal_name=owner,
        renewers=[renewer],
        max_lifetime_ms=-1,
    )
    return lambda _ids: request
