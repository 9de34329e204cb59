"""Which topics a consumer subscribes to, read from the metadata it joins with.

    subscription   int16 version | int32 count, topics as int16 length and bytes | ...

Every version begins like this, and the coordinator needs no more: what follows (user data, owned partitions, rack) is between
the clients. Source: ConsumerProtocolSubscription.json of Apache Kafka.
"""

from struct import Struct

from odradek.protocol.errors import MalformedMessage

CONSUMER_PROTOCOL_TYPE = "consumer"

_HEAD = Struct(">hi")
_LENGTH = Struct(">h")


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """The topics named in a consumer's subscription. Raises MalformedMessage where it is none."""
    if len(metadata) < _HEAD.size:
        raise MalformedMessage("a subscription too short to be one")
    version, count = _HEAD.unpack_from(metadata)
    # Each topic takes two bytes at least, so a count beyond that is refused before anything is made of it.
    if version < 0 or not 0 <= count <= len(metadata) // 2:
        raise MalformedMessage(f"a subscription of version {version} with {count} topics in {len(metadata)} bytes")
    position = _HEAD.size
    topics = set()
    for _ in range(count):
        start = position + 2
        if start > len(metadata):
            raise MalformedMessage("a subscription that ends within its topics")
        length: int = _LENGTH.unpack_from(metadata, position)[0]
        position = start + length
        if length < 0 or position > len(metadata):
            raise MalformedMessage("a subscription that ends within a topic's name")
        try:
            topics.add(metadata[start:position].decode())
        except UnicodeDecodeError:
            raise MalformedMessage("a topic's name that is not UTF-8") from None
    return frozenset(topics)
