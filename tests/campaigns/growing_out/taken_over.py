"""A group of the consumer protocol that Apache Kafka had, gone on with at odradek by members of both protocols, then at Kafka.

Kafka makes it with a member and an offset. At odradek the member goes on with its epoch, and finds the offset. A classic member
joins it. The first one leaves, so that the group is a classic one, whose member commits the next offset. At Kafka the group is
that classic one, with that offset, and takes a member of the consumer protocol again.
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
    """At odradek: the member goes on, a classic one joins it, and then has the group. What is not as it has to be."""
    found = [] if _committed(client, topic) == _FIRST else [f"{GROUP}: {_committed(client, topic)} is committed, not {_FIRST}"]
    (member,) = insist(lambda: client.call(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=[GROUP]).groups[0]).members
    place = {"group_id": GROUP, "member_id": member.member_id}
    told = accept(client.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **place, member_epoch=member.member_epoch))
    if told.member_epoch != member.member_epoch:
        found.append(f"{GROUP}: the member of epoch {member.member_epoch} is told {told.member_epoch}")
    joined = client.call(ApiKey.JOIN_GROUP, 5, **_join("", topic))
    joined = accept(client.call(ApiKey.JOIN_GROUP, 5, **_join(joined.member_id, topic)))
    if joined.generation_id <= member.member_epoch or joined.leader:
        found.append(f"{GROUP}: generation {joined.generation_id} of {joined.leader or 'nobody'}")
    _sync(client, joined)
    accept(client.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **place, member_epoch=-1))
    joined = accept(client.call(ApiKey.JOIN_GROUP, 5, **_join(joined.member_id, topic)))
    if joined.leader != joined.member_id:
        found.append(f"{GROUP}: {joined.leader} leads")
    _sync(client, joined)
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


def _sync(client: RawClient, joined: Any) -> None:
    place = {"group_id": GROUP, "member_id": joined.member_id, "generation_id": joined.generation_id}
    accept(client.call(ApiKey.SYNC_GROUP, 3, **place, assignments=[{"member_id": joined.member_id, "assignment": b"all"}]))


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
