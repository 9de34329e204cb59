"""Slice ``telemetry``: the configs of client metrics, and clients that ask for their subscription and push (KIP-714).

The last client instance of a connection is known until that closes, so each has one of its own, and each run of a script may have
the same ids. An id below 2**64 is one of a
script's own, of which both brokers compute the same subscription id.
"""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress
from tests.campaigns.wire_differential.cases.setup import topic
from tests.campaigns.wire_differential.script import Ref, Script, Step

CLIENT_METRICS = 16
SUBSCRIPTION = "@s"
ASKED = ApiKey.GET_TELEMETRY_SUBSCRIPTIONS
SET, DELETE, APPEND, SUBTRACT = range(4)
# Resource metrics > scope metrics > metric "m" > gauge > a data point of 1.5.
METRICS = bytes.fromhex("0a14 1212 1210 0a016d 2a0b 0a09 21000000000000f83f")
_LONG_MS = 250_000
_MAX_BYTES = 1 << 20
_PREFIXES = "org.apache.kafka.producer.,org.apache.kafka.consumer.,a,b,aa,bB,org.apache.kafka.client.connection,z"
_ATTRIBUTES = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def own_id(number: int) -> UUID:
    """A client instance's id."""
    return UUID(int=0x7140_0000_0000_0000 + number)


def base64(number: int) -> str:
    """The same as ``match`` has it."""
    from odradek.protocol.texts import uuid_text

    return uuid_text(own_id(number))


def alter(label: str, configs: list[tuple[str, str | None, int]], name: str = SUBSCRIPTION, version: int = 1) -> Step:
    """Alter a subscription."""
    told = [{"name": config, "value": value, "config_operation": operation} for config, value, operation in configs]
    resources = [{"resource_type": CLIENT_METRICS, "resource_name": name, "configs": told}]
    return Step(label, ApiKey.INCREMENTAL_ALTER_CONFIGS, version, {"resources": resources, "validate_only": False})


def subscribe(number: int, *, interval_ms: int = _LONG_MS, metrics: str = "*", name: str = SUBSCRIPTION) -> Step:
    """Ask the client of a number."""
    match = f"client_instance_id={base64(number)}"
    return alter("", [("metrics", metrics, SET), ("interval.ms", str(interval_ms), SET), ("match", match, SET)], name)


def unsubscribe(name: str = SUBSCRIPTION) -> Step:
    """Ask nobody."""
    return alter("", [(config, None, DELETE) for config in ("metrics", "interval.ms", "match")], name)


def get(label: str, number: int, until_ms: int | None = None) -> Step:
    """Ask for the subscription; again until it has this interval."""
    until = None if until_ms is None else ("push_interval_ms", (until_ms,))
    bind = {f"subscription{number}": "subscription_id"}
    return Step(label, ASKED, 0, {"client_instance_id": own_id(number)}, bind=bind, until=until, connection=f"c{number}")


def push(label: str, number: int, metrics: bytes = METRICS, *, compression: int = NONE, **fields: Any) -> Step:
    """Push, by default what is asked for."""
    told = {
        "client_instance_id": own_id(number),
        "subscription_id": Ref(f"subscription{number}", 0),
        "terminating": False,
        "compression_type": compression,
        "metrics": metrics,
        **fields,
    }
    return Step(label, ApiKey.PUSH_TELEMETRY, 0, told, connection=f"c{number}")


def configs() -> Iterator[Step]:
    """What a subscription may be."""
    for value in ("100", "99", "3600000", "3600001", "0", "-1", "2147483648", "x", "", " 200 ", "+300", None):
        yield alter(f"sets interval.ms={value}", [("interval.ms", value, SET)])
    for value in ("*", "", "a,b", "a,a", "a,,b", ",", " a , b ", "a,b,", "long" * 600, None):
        yield alter(f"sets metrics={(value or '')[:20] if value is not None else value}", [("metrics", value, SET)])
    for attribute in _ATTRIBUTES:
        yield alter(f"sets match={attribute}", [("match", f"{attribute}=a.*", SET)])
    for value in (
        *("", "client_id", "client_id=", "=a", "client_id=a=b", "client_id=a=", " client_id = a ", "no_such=a", "client_id=("),
        *("client_id=a,client_id=b", "client_id=a,client_id=a", "client_id=a,", "client_id=[a-z]+,client_software_name=.*", ","),
        *("Client_id=a", "client_id==a", "client_id=a{1,2}", "client_id=\\p{L}+", "client_id=(?i)A"),
    ):
        yield alter(f"sets match={value!r}", [("match", value, SET)])
    for name in ("no.such", ""):
        yield alter(f"sets {name}", [(name, "1", SET)])
        yield alter(f"deletes {name}", [(name, None, DELETE)])
    yield alter("appends", [("metrics", "c,d", APPEND)])
    yield alter("appends again", [("metrics", "c", APPEND)])
    yield alter("subtracts", [("metrics", "c", SUBTRACT)])
    yield alter("appends to no list", [("interval.ms", "1", APPEND)])
    yield alter("appends a wrong match", [("match", "no", APPEND)])
    yield alter("sets two", [("interval.ms", "500", SET), ("metrics", "x", SET)])
    yield alter("sets one of two wrong", [("interval.ms", "500", SET), ("metrics", "x,x", SET)])
    yield alter("sets one twice", [("interval.ms", "500", SET), ("interval.ms", "600", SET)])
    yield alter("sets of no name", [("interval.ms", "500", SET)], "")
    yield alter("deletes of one that is not there", [("interval.ms", None, DELETE)], "@no")
    yield from _looks("some")
    for version in (0, 1, 2):
        resources = [
            {"resource_type": CLIENT_METRICS, "resource_name": SUBSCRIPTION, "configs": [{"name": "interval.ms", "value": "700"}]}
        ]
        for validate_only in (True, False):
            asked = {"resources": resources, "validate_only": validate_only}
            yield Step(f"replaces all {validate_only}", ApiKey.ALTER_CONFIGS, version, asked)
    yield from _looks("replaced")
    yield alter("deletes the last", [("interval.ms", None, DELETE)], version=0)
    yield from _looks("none")


def _looks(what: str) -> Iterator[Step]:
    for synonyms in (False, True):
        for name in (SUBSCRIPTION, "@no", ""):
            for keys in (None, [], ["interval.ms", "no.such"]):
                resources = [{"resource_type": CLIENT_METRICS, "resource_name": name, "configuration_keys": keys}]
                asked = {"resources": resources, "include_synonyms": synonyms, "include_documentation": synonyms}
                yield Step(f"{what}: describes {keys} of {name} {synonyms}", ApiKey.DESCRIBE_CONFIGS, 4, asked)
    yield Step(f"{what}: lists", ApiKey.LIST_CONFIG_RESOURCES, 0)
    for types in ([], [2], [4], [8], [16], [32], [2, 16], [16, 16], [1], [0], [64], [16, 3]):
        yield Step(f"{what}: lists {types}", ApiKey.LIST_CONFIG_RESOURCES, 1, {"resource_types": types})


def resources() -> Iterator[Step]:
    """What there is to configure."""
    yield from topic()
    yield alter("makes one", [("interval.ms", "1000", SET), ("match", "client_id=nobody-at-all", SET)])
    yield alter("makes another", [("metrics", "a", SET), ("match", "client_id=nobody-at-all", SET)], "@other")
    yield from _looks("two")
    yield unsubscribe()
    yield unsubscribe("@other")
    yield from _looks("gone")


def unasked() -> Iterator[Step]:
    """A client that nobody asks: it is told so, and to come again in five minutes."""
    yield get("gets", 1)
    yield get("gets too early", 1)
    yield push("pushes", 1)
    yield push("pushes too early", 1)
    yield get("gets after that", 1)
    yield Step("gets without an id", ASKED, 0, {"client_instance_id": None})
    yield Step("gets by a reserved id", ASKED, 0, {"client_instance_id": UUID(int=1)})
    for number, label in ((None, "no id"), (UUID(int=1), "a reserved id")):
        yield push(f"pushes by {label}", 1, client_instance_id=number)
    yield push("pushes without a get", 2, subscription_id=7)
    yield get("gets after an unknown subscription", 2)
    yield get("gets again", 2)


def life() -> Iterator[Step]:
    """What becomes of gets and pushes, one after the other, early and late."""
    yield subscribe(3, metrics=_PREFIXES)
    yield get("gets", 3, _LONG_MS)
    yield push("pushes another subscription", 3, subscription_id=1)
    yield get("gets at once, then", 3)
    yield push("pushes", 3)
    yield push("pushes too early", 3)
    yield push("pushes too early what is not asked", 3, subscription_id=1)
    yield get("gets too early", 3)
    yield push("ends", 3, terminating=True)
    yield push("pushes after the end", 3)
    yield push("ends again", 3, terminating=True)
    yield get("gets after the end", 3)
    yield subscribe(3, metrics="a,b", interval_ms=200_000)
    yield get("gets what has changed", 3, 200_000)
    yield get("gets that too early", 3)
    yield push("pushes for the change", 3)
    yield subscribe(3, interval_ms=150_000)
    yield push("pushes for the old one", 3)
    yield get("gets the new one", 3, 150_000)
    yield unsubscribe()
    yield get("is not asked any more", 3, 300_000)


def payloads() -> Iterator[Step]:
    """What is pushed."""
    cases: list[tuple[str, bytes, int]] = [
        ("nothing", b"", NONE),
        *((f"codec {codec}", compress(codec, METRICS), codec) for codec in (NONE, GZIP, SNAPPY, LZ4, ZSTD)),
        *((f"unknown codec {codec}", METRICS, codec) for codec in (5, 127, -1)),
        *((f"junk of codec {codec}", b"\xff\xff\xff", codec) for codec in (NONE, GZIP, SNAPPY, LZ4, ZSTD)),
        ("the most bytes", bytes(_MAX_BYTES), NONE),
        ("too many bytes", bytes(_MAX_BYTES + 1), NONE),
        ("too many bytes of an unknown codec", bytes(_MAX_BYTES + 1), 9),
    ]
    for number, (label, metrics, codec) in enumerate(cases, 10):
        yield get("", number)
        yield push(f"pushes {label}", number, metrics, compression=codec)
        yield get(f"gets after {label}", number)
        yield push(f"ends after {label}", number, terminating=True)


def matching() -> Iterator[Step]:
    """Which clients are asked."""
    for number, match in enumerate(
        (
            *("client_id=wire", "client_id=w.*", "client_id=ire", "client_id=W.*", "client_software_name=wire"),
            *("client_software_name=apache.*", "client_software_version=1\\.0", "client_source_address=127.0.0.1"),
            *("client_source_address=10.*", "client_source_port=[0-9]+", "client_source_port=x", "client_id=wire|other"),
            "client_id=wire,client_source_address=127.*",
            "client_id=wire,client_source_address=10.*",
        ),
        50,
    ):
        yield alter("", [("metrics", "m", SET), ("interval.ms", str(200_000 + number), SET), ("match", match, SET)])
        # By this one the change is known to have come; it has the longer interval.
        yield subscribe(number, metrics="o", interval_ms=299_000, name="@other")
        yield Step(
            match,
            ASKED,
            0,
            {"client_instance_id": own_id(number)},
            until=("push_interval_ms", (200_000 + number, 299_000)),
            connection=f"c{number}",
        )
    yield unsubscribe()
    yield unsubscribe("@other")


STORIES: tuple[Callable[[], Iterator[Step]], ...] = (configs, resources, unasked, life, payloads, matching)


def scripts() -> Iterator[Script]:
    """One for each story."""
    for story in STORIES:
        yield Script(f"telemetry/{story.__name__}", tuple(story()))
