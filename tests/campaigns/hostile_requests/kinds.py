"""The kinds of hostile requests: each draws, from a seed, the frames that one client sends on one connection.

A kind is a row of ``KINDS``. Some requests are valid and huge, some lie, some are small and ask for much work.
"""

import struct
from random import Random
from typing import Any

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.client_codecs import request_header
from odradek.protocol.varint import uvarint
from tests.campaigns.hostile_requests import amplified, cluster
from tests.campaigns.hostile_requests.cluster import KNOWN
from tests.campaigns.hostile_requests.drawn import Draw, Hostile, drawn_number
from tests.campaigns.hostile_requests.frames import LargeArray, Path, array_paths, large_frame
from tests.raw_client import encode_request

# socket.request.max.bytes, without what a header takes.
_MOST_BYTES = 100 * 1024 * 1024 - 1024
_WIDE = list(SERVED)
# A Produce without acks has no answer to wait for.
_ACKS = {"acks": 1}
_PATTERNS = ("(a+)+b", "(a|aa)+$", "(a?){1000}a{1000}", "(.*)*b", r"\pL{1000}", "(?:a?){500}" + "a" * 500, "(" * 500, "[" * 1000)
# How often a number of items or bytes is drawn, beside what draws it: the largest frames take seconds to be made and sent.
_SIZES = {10: 6, 1_000: 6, 10_000: 6, 100_000: 6, 1_000_000: 2, 5_000_000: 1}
_MOST_CREATED = 5_000


def _wide_array(random: Random) -> Hostile:
    """Any array of any request, of any length, with names that are known, unknown, or all different."""
    api_key, version, path = _any_array(random)
    count = random.randrange(1, drawn_number(random, _SIZES))
    name = random.choice((KNOWN, "", None))
    distinct = random.random() < 0.7
    frame = _fitting(api_key, version, path, count, name, distinct=distinct)
    return Hostile(f"{api_key.name} v{version}, {'.'.join(path)} of up to {count}", (frame,))


def _lying_count(random: Random) -> Hostile:
    """A count far above the items that follow."""
    api_key, version, path = _any_array(random)
    claimed = random.choice((2**31 - 2, 2**24, 100_000))
    count = random.choice((0, 1, 10_000))
    large = LargeArray(path, count, "x", claimed=claimed)
    return Hostile(f"{api_key.name} v{version}, {'.'.join(path)} says {claimed}", (large_frame(api_key, version, large),))


def _unknown_topics(random: Random) -> Hostile:
    """Names of topics that a Metadata request may create: the same each time, so that the cluster does not grow for ever.

    Beyond some thousands they are names that no topic can have.
    """
    count = drawn_number(random, {100: 8, 5_000: 4, 100_000: 4, 1_000_000: 1})
    large = LargeArray(("topics",), count, "new-" if count <= _MOST_CREATED else "new/", distinct=True)
    frame = large_frame(ApiKey.METADATA, 9, large, {"allow_auto_topic_creation": True})
    return Hostile(f"Metadata of {count} unknown topics", (frame,))


def _many_partitions(random: Random) -> Hostile:
    """A topic of thousands of partitions, made and deleted."""
    count = drawn_number(random, {100: 8, 1_000: 4, 10_000: 1})
    topic = {"name": "many", "num_partitions": count, "replication_factor": 1, "assignments": [], "configs": []}
    create = encode_request(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=60_000)
    delete = encode_request(ApiKey.DELETE_TOPICS, 5, topic_names=["many"], timeout_ms=60_000)
    return Hostile(f"a topic of {count} partitions", (create, delete))


def _pattern(random: Random) -> Hostile:
    """A pattern that takes long in other engines than RE2."""
    pattern = random.choice(_PATTERNS)
    fields = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}
    frame = encode_request(ApiKey.LIST_TRANSACTIONS, 2, transactional_id_pattern=pattern, **fields)
    return Hostile(f"ListTransactions, pattern {pattern[:30]}", (frame,))


def _coordinators(random: Random) -> Hostile:
    """Thousands of keys of FindCoordinator."""
    count = random.choice((2_000, 20_000, 50_000))
    frame = large_frame(ApiKey.FIND_COORDINATOR, 4, LargeArray(("coordinator_keys",), count, "k", distinct=True))
    return Hostile(f"FindCoordinator of {count} keys", (frame,))


def _tagged_fields(random: Random) -> Hostile:
    """Millions of tagged fields, in the header or behind the body."""
    count = drawn_number(random, {1_000: 4, 1_000_000: 4, 20_000_000: 1})
    tags = uvarint(count) + b"\x7f\0" * count
    header = request_header(ApiKey.FIND_COORDINATOR, 4, 1, "hostile", flexible=False)
    body = header + (tags + b"\0\1\0" if random.random() < 0.5 else b"\0\0\1" + tags)
    return Hostile(f"{count} tagged fields", (struct.pack(">i", len(body)) + body,))


def _long_string(random: Random) -> Hostile:
    """A string of megabytes where a name belongs: in one of three APIs, or in every string of any."""
    name = "x" * drawn_number(random, {30_000: 4, 40_000: 4, 1_000_000: 4, 30_000_000: 1, 90_000_000: 1})
    if random.random() < 0.5:
        api_key = random.choice(_WIDE)
        version = SERVED[api_key].max_version
        try:
            frame = large_frame(api_key, version, LargeArray((), 0, name[:10_000_000]), _ACKS)
        except struct.error:
            # Its lengths have two bytes.
            frame = large_frame(api_key, version, LargeArray((), 0, name[:30_000]), _ACKS)
        return Hostile(f"{api_key.name} v{version}, strings of {len(name)}", (frame,))
    api_key, fields = random.choice(
        (
            (ApiKey.FIND_COORDINATOR, {"key": "k", "coordinator_keys": [name]}),
            (ApiKey.DESCRIBE_GROUPS, {"groups": [name]}),
            (ApiKey.HEARTBEAT, {"group_id": name}),
        )
    )
    version = SERVED[api_key].max_version
    fields.pop("key", None)
    return Hostile(f"{api_key.name}, a string of {len(name)}", (encode_request(api_key, version, **fields),))


def _noise(random: Random) -> Hostile:
    """A header, and bytes."""
    api_key = random.choice([api_key for api_key in _WIDE if api_key != ApiKey.PRODUCE])
    version = SERVED[api_key].max_version
    header = request_header(api_key, version, 1, "hostile", flexible=True)
    byte = random.choice((b"\0", b"\1", b"\2", b"\x7f", b"\xff", None))
    size = random.randrange(1, drawn_number(random, {1_000: 4, 1_000_000: 4, 30_000_000: 1}))
    body = header + (random.randbytes(size) if byte is None else byte * size)
    return Hostile(f"{api_key.name} v{version}, {size} bytes {byte!r}", (struct.pack(">i", len(body)) + body,))


def _any_array(random: Random) -> tuple[ApiKey, int, Path]:
    while True:
        api_key = random.choice(_WIDE)
        served = SERVED[api_key]
        version = random.choice((served.max_version, random.randint(served.min_version, served.max_version)))
        paths = array_paths(api_key, version)
        if paths:
            return api_key, version, random.choice(paths)


def _fitting(api_key: ApiKey, version: int, path: Path, count: int, name: str | None, *, distinct: bool) -> bytes:
    """The frame, of fewer items where so many are more than the broker reads."""
    fields: dict[str, Any] = {"session_timeout_ms": 10_000, "resource_type": 2, "validate_only": True, "num_partitions": 1}
    if name is not None:
        fields |= dict.fromkeys(("group_id", "name", "topic", "topic_name", "resource_name", "transactional_id"), name)
    else:
        fields |= dict.fromkeys(("group_id", "transactional_id"), KNOWN)
    fields |= {**_ACKS, "protocol_type": "consumer", "replication_factor": 1, "allow_auto_topic_creation": False}
    few = 100
    frame = large_frame(api_key, version, LargeArray(path, few, "x", distinct), fields)
    item_bytes = (len(frame) - len(large_frame(api_key, version, LargeArray(path, 0, "x", distinct), fields))) / few
    most = int((_MOST_BYTES - len(frame)) / max(item_bytes, 1))
    return large_frame(api_key, version, LargeArray(path, min(count, most), "x", distinct), fields)


KINDS: dict[str, tuple[Draw, int]] = {
    # What draws it, and how often among the others: each hundreds of times in 10,000.
    "wide array": (_wide_array, 400),
    "lying count": (_lying_count, 80),
    "unknown topics": (_unknown_topics, 24),
    "many partitions": (_many_partitions, 24),
    "many topics": (cluster.many_topics, 24),
    "pattern": (_pattern, 40),
    "coordinators": (_coordinators, 40),
    "tagged fields": (_tagged_fields, 40),
    "long string": (_long_string, 60),
    "noise": (_noise, 80),
    "all there is": (cluster.all_there_is, 80),
    "every partition": (cluster.every_partition, 20),
    "record bomb": (cluster.record_bomb, 20),
    "many batches": (cluster.many_batches, 20),
    "large answer": (amplified.large_answer, 120),
    "slow readers": (amplified.slow_readers, 24),
    "flood": (amplified.floods, 24),
}


def draw(seed: int, number: int, kinds: tuple[str, ...] = ()) -> tuple[str, Hostile]:
    """The kind and the frames of one number of a seed; only of ``kinds``, if there are any."""
    name, random = choose(seed, number, kinds)
    return name, KINDS[name][0](random)


def choose(seed: int, number: int, kinds: tuple[str, ...] = ()) -> tuple[str, Random]:
    """The same kind, and what draws its frames."""
    random = Random(f"{seed}-{number}")
    chosen = {name: KINDS[name] for name in kinds or KINDS}
    (name,) = random.choices(list(chosen), weights=[weight for _, weight in chosen.values()])
    return name, random
