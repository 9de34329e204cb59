"""A group of the consumer protocol that Apache Kafka had, gone on with by a classic member at odradek, and then at Kafka again.

Kafka makes it with a member and an offset. At odradek, which does not serve the protocol, a consumer of the classic one joins the
group of the same id, finds the offset and commits the next. At Kafka the group is the classic one, with that offset, and takes a
member of the consumer protocol again.
"""

import struct
from typing import Any

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.growing_out.inventory import KEPT
from tests.campaigns.growing_out.kafkas_own import accept, consumer_heartbeat, insist
from tests.raw_client import RawClient

GROUP = f"{KEPT}-taken-over"
_FIRST, _NEXT = 3, 4


def leave_a_consumer_group(client: RawClient, topic: str) -> None:
    """At Kafka: a member and an offset."""
    member = consumer_heartbeat(client, GROUP, topic)
    _commit(client, topic, _FIRST, 9, member.member_id, member.member_epoch)


def take_over(client: RawClient, topic: str) -> list[str]:
    """At odradek: a classic member goes on. What is not as it has to be."""
    found = [] if _committed(client, topic) == _FIRST else [f"{GROUP}: {_committed(client, topic)} is committed, not {_FIRST}"]
    joined = client.call(ApiKey.JOIN_GROUP, 5, **_join("", topic))
    joined = accept(client.call(ApiKey.JOIN_GROUP, 5, **_join(joined.member_id, topic)))
    place = {"group_id": GROUP, "member_id": joined.member_id, "generation_id": joined.generation_id}
    accept(client.call(ApiKey.SYNC_GROUP, 3, **place, assignments=[{"member_id": joined.member_id, "assignment": b"all"}]))
    _commit(client, topic, _NEXT, 8, joined.member_id, joined.generation_id)
    accept(client.call(ApiKey.LEAVE_GROUP, 3, group_id=GROUP, members=[{"member_id": joined.member_id}]))
    return found


def look_at_it(client: RawClient, topic: str) -> list[str]:
    """At Kafka again: what is not as it has to be."""
    described = insist(lambda: client.call(ApiKey.DESCRIBE_GROUPS, 5, groups=[GROUP]).groups[0])
    seen = (described.group_state, described.protocol_type, _committed(client, topic))
    found = [] if seen == ("Empty", "consumer", _NEXT) else [f"{GROUP}: {seen} at Kafka"]
    consumer_heartbeat(client, GROUP, topic)
    return found


def _join(member_id: str, topic: str) -> dict[str, Any]:
    # A subscription, version 0: the topic, and no user data.
    subscription = struct.pack(f">hih{len(topic)}si", 0, 1, len(topic), topic.encode(), -1)
    protocols = [{"name": "range", "metadata": subscription}]
    times = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000}
    return {"group_id": GROUP, "member_id": member_id, "protocol_type": "consumer", "protocols": protocols, **times}


def _commit(client: RawClient, topic: str, offset: int, version: int, member_id: str, generation: int) -> None:
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": offset, "committed_metadata": "kept"}]}]
    place = {"group_id": GROUP, "member_id": member_id, "generation_id_or_member_epoch": generation}
    insist(lambda: client.call(ApiKey.OFFSET_COMMIT, version, topics=topics, **place).topics[0].partitions[0])


def _committed(client: RawClient, topic: str) -> int:
    asked = [{"group_id": GROUP, "topics": [{"name": topic, "partition_indexes": [0]}]}]
    return int(client.call(ApiKey.OFFSET_FETCH, 8, groups=asked).groups[0].topics[0].partitions[0].committed_offset)
