"""Part of slice ``consumers``: what a member of a consumer group may ask, and every way in which it may be wrong, as stories."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.wire_differential.cases import setup
from tests.campaigns.wire_differential.cases.consumer_steps import (
    DELETE,
    GROUP_RESOURCE,
    OTHER,
    SET,
    alter,
    beat,
    commit,
    epoch_of,
    fetch,
    looks,
    owned,
    owned_by,
    topics,
    until_given,
)
from tests.campaigns.wire_differential.cases.setup import GROUP, SIMPLE_GROUP, SUBSCRIPTION, TOPIC
from tests.campaigns.wire_differential.script import Ref, Script, Step

_UNKNOWN_ID = UUID(int=(1 << 127) + 99)


def form() -> Iterator[Step]:
    """Requests that are wrong in themselves, of a group that is there and of one that is not."""
    yield from topics(t=2)
    wrong: tuple[tuple[str, dict[str, Any]], ...] = (
        ("no member id", {"member_id": ""}),
        ("a blank member id", {"member_id": " "}),
        ("no group id", {"group_id": ""}),
        ("a blank group id", {"group_id": " "}),
        ("an empty instance id", {"instance_id": ""}),
        ("a blank instance id", {"instance_id": " "}),
        ("an empty rack", {"rack_id": ""}),
        ("no rebalance timeout", {"rebalance_timeout_ms": -1}),
        ("a rebalance timeout of 0", {"rebalance_timeout_ms": 0}),
        ("partitions not told", {"topic_partitions": None}),
        ("partitions owned", {"topic_partitions": owned(0)}),
        ("no subscription", {"subscribed_topic_names": None}),
        ("an empty subscription", {"subscribed_topic_names": []}),
        ("an empty pattern", {"subscribed_topic_names": None, "subscribed_topic_regex": ""}),
        ("a wrong pattern", {"subscribed_topic_names": None, "subscribed_topic_regex": "("}),
        ("a pattern with a look-ahead", {"subscribed_topic_names": None, "subscribed_topic_regex": "(?=a)"}),
        ("a pattern with a back reference", {"subscribed_topic_names": None, "subscribed_topic_regex": r"(a)\1"}),
        ("an unknown assignor", {"server_assignor": "none"}),
        ("an assignor without name", {"server_assignor": ""}),
        ("a topic twice", {"subscribed_topic_names": [TOPIC, TOPIC]}),
        ("a topic without name", {"subscribed_topic_names": [""]}),
        ("the internal topic", {"subscribed_topic_names": ["__consumer_offsets"]}),
    )
    for version in (0, 1):
        for epoch in (0, 1, -1, -2, -3):
            for label, fields in wrong if epoch in {0, 1} else wrong[:7]:
                named = {"group_id": f"@g-{version}-{epoch}", **fields}
                yield beat(f"{label} at {epoch}", "m", epoch, version, **named)
        yield beat(f"joins in version {version}", f"n{version}", 0, version, group_id=f"@h{version}")
        for label, fields in wrong:
            yield beat(f"{label} of a member", f"n{version}", version=version, **{"group_id": f"@h{version}", **fields})


def epochs() -> Iterator[Step]:
    """A member's epoch, those around it, and those of nobody: of heartbeats, commits and fetches."""
    yield from topics(t=2)
    yield beat("m joins", "m", 0, subscribed_topic_names=[])
    yield beat("m subscribes", "m", subscribed_topic_names=[TOPIC])
    yield beat("m has heard", "m", topic_partitions=owned_by("m"))
    for plus in (-2, -1, 0, 1, 7):
        at = epoch_of("m", plus)
        for version in (2, 7, 8, 9, 10):
            yield commit(f"commits at {plus:+}", "m", at, version)
        for version in (1, 7, 8, 9, 10):
            yield fetch(f"fetches at {plus:+}", "m", at, version)
        yield beat(f"beats at {plus:+}", "m", at)
        yield beat(f"beats at {plus:+}, owns nothing", "m", at, topic_partitions=[])
        yield beat(f"beats at {plus:+}, owns what it has", "m", at, topic_partitions=owned(0))
        yield beat(f"beats at {plus:+}, owns another's", "m", at, topic_partitions=owned(0, 1, 2))
        yield beat(
            f"beats at {plus:+}, owns of an unknown topic",
            "m",
            at,
            topic_partitions=[{"topic_id": _UNKNOWN_ID, "partitions": [0]}],
        )
    for version in (8, 9, 10):
        for who, epoch in (("nobody", 1), ("nobody", -1), ("", -1), ("", 0), ("", 3), ("m", -1), ("m", -2), ("m", 0)):
            yield commit(f"{who!r} commits at {epoch}", who, epoch, version)
            yield fetch(f"{who!r} fetches at {epoch}", who, epoch, version)
        yield commit("commits with an instance", "m", version=version, group_instance_id="i")
        yield fetch("fetches all", "m", version=version, topics=None)
        yield fetch("fetches nothing", "m", version=version, topics=[])
        yield fetch(
            "fetches of an unknown topic",
            "m",
            version=version,
            topics=[{"name": "@no", "topic_id": _UNKNOWN_ID, "partition_indexes": [0]}],
        )
        yield commit("commits to a group that is not there", "m", version=version, group_id="@no")
        yield commit("commits alone to a group that is not there", "", -1, version=version, group_id=f"@no{version}")
        yield fetch("fetches of a group that is not there", "m", version=version, group_id="@no")
    yield beat("joins again", "m", 0)
    yield from looks("at the end")


def static() -> Iterator[Step]:
    """Instance ids: taken, released, taken over, fenced."""
    i: dict[str, Any] = {"instance_id": "i"}
    yield from topics(t=2)
    yield beat("m joins", "m", 0, **i)
    yield beat("m beats without it", "m")
    yield beat("m beats with another", "m", instance_id="j")
    yield beat("n cannot join", "n", 0, **i)
    yield beat("n beats", "n", 1, **i)
    yield beat("n leaves for a while", "n", -2, **i)
    yield beat("n leaves for good", "n", -1, **i)
    yield beat("m leaves for a while without it", "m", -2)
    yield commit("m commits with it", "m", group_instance_id="i")
    yield commit("n commits with it", "n", 1, group_instance_id="i")
    yield from looks("m is there")
    yield beat("m leaves for a while", "m", -2, **i)
    yield from looks("m is away")
    yield commit("m commits while away", "m")
    yield commit("m commits while away at -2", "m", -2)
    yield fetch("m fetches while away", "m")
    yield fetch("m fetches while away at -2", "m", -2)
    yield beat("m beats while away", "m", **i)
    yield beat("m leaves again", "m", -2, **i)
    yield beat("o joins without", "o", 0)
    yield beat("n takes its place", "n", 0, **i)
    yield from looks("n is there")
    yield beat("m is fenced", "m", **i)
    yield beat("m is fenced as it leaves for a while", "m", -2, **i)
    yield beat("m is fenced as it leaves for good", "m", -1, **i)
    yield beat("m is fenced as it joins", "m", 0, **i)
    yield beat("m has left without it", "m")
    yield commit("m commits", "m")
    yield beat("n goes on", "n", **i)
    yield beat("n leaves for a while ", "n", -2, **i)
    yield beat("n comes back", "n", 0, **i)
    yield beat("n comes back with another subscription", "n", 0, **i, subscribed_topic_names=[])
    yield beat("n leaves for a while, again", "n", -2, **i)
    yield beat("p takes its place with another subscription", "p", 0, **i, subscribed_topic_names=[TOPIC, OTHER])
    yield beat("a dynamic one is static now", "o", **i)
    yield beat("q joins", "q", 0, instance_id="k")
    members = [{"member_id": "", "group_instance_id": "i"}, {"member_id": "@nobody", "group_instance_id": "k"}]
    yield Step("leaves by hand", ApiKey.LEAVE_GROUP, 5, {"group_id": GROUP, "members": members})
    yield from looks("two are removed")
    yield beat("p leaves for good", "p", -1, **i)
    yield from looks("at the end")


def becomes_static() -> Iterator[Step]:
    """A dynamic member takes an instance id while it has a partition to give up."""
    yield from topics(t=2)
    yield beat("o joins", "o", 0)
    yield beat("m joins", "m", 0)
    yield beat("o is to give one up", "o")
    yield beat("takes an instance", "o", 0, instance_id="k")
    yield beat("m is given", "m", topic_partitions=[])
    yield from looks("took an instance")


def revocation() -> Iterator[Step]:
    """A partition goes to another when its holder has given it up, told or not."""
    yield from topics(t=4, u=2)
    yield beat("m joins", "m", 0)
    yield beat("n joins", "n", 0)
    yield beat("m is told", "m")
    yield from looks("m is to give up two")
    yield beat(
        "m is told again", "m", rebalance_timeout_ms=60_000, subscribed_topic_names=[TOPIC], topic_partitions=owned(0, 1, 2, 3)
    )
    yield commit("m commits meanwhile", "m")
    yield beat("n waits", "n")
    yield beat("o joins meanwhile", "o", 0)
    yield beat("m gives one up", "m", topic_partitions=owned(0, 1, 2))
    yield beat("m says nothing", "m")
    yield beat("m owns nothing", "m", topic_partitions=[])
    yield from looks("m has given up")
    yield beat("n is given", "n", topic_partitions=[])
    yield beat("o is given", "o", topic_partitions=[])
    yield beat("m goes on", "m", topic_partitions=owned_by("m"))
    yield beat("n goes on", "n", topic_partitions=owned_by("n"))
    yield beat("m subscribes to another as well", "m", subscribed_topic_names=[TOPIC, OTHER])
    yield beat("n goes on, told", "n", topic_partitions=owned_by("n"))
    yield beat("m unsubscribes from what it has", "m", subscribed_topic_names=[OTHER])
    yield beat("o goes on, told", "o", topic_partitions=owned_by("o"))
    yield from looks("m has others")
    yield beat("m beats with what it had", "m", topic_partitions=owned(0))
    yield beat("n beats", "n", topic_partitions=owned_by("n"))
    yield beat("o leaves", "o", -1)
    yield beat("o beats", "o")
    yield beat("n is given what o had", "n", topic_partitions=owned_by("n"))
    yield beat("n joins again", "n", 0)
    yield beat("n leaves", "n", -1)
    yield beat("n leaves again", "n", -1)
    yield beat("m leaves", "m", -1)
    yield from looks("empty")
    yield beat("m beats in an empty group", "m", 1)
    yield beat("m joins an empty group", "m", 0)


def partial() -> Iterator[Step]:
    """The fields of a heartbeat, in any combination: which make it a full one, and which change the member."""
    yield from topics(t=2, u=2)
    yield beat("m joins", "m", 0, rack_id="r")
    for timeout in (-1, 60_000, 5_000):
        for names in (None, [TOPIC]):
            for partitions in (None, [], owned(0, 1)):
                for pattern in (None, ""):
                    fields: dict[str, Any] = {
                        "rebalance_timeout_ms": timeout,
                        "subscribed_topic_names": names,
                        "topic_partitions": partitions,
                    }
                    yield beat(
                        f"beats with {timeout} {names} {partitions} {pattern!r}", "m", **fields, subscribed_topic_regex=pattern
                    )
    changes: tuple[tuple[str, dict[str, Any]], ...] = (
        ("a rack", {"rack_id": "s"}),
        ("an assignor", {"server_assignor": "uniform"}),
        ("the same again", {"server_assignor": "uniform"}),
        ("no topics", {"subscribed_topic_names": []}),
        ("one that is not there", {"subscribed_topic_names": ["@no"]}),
        ("topics", {"subscribed_topic_names": [OTHER, TOPIC]}),
        ("topics in another order", {"subscribed_topic_names": [TOPIC, OTHER]}),
        ("a timeout", {"rebalance_timeout_ms": 7}),
    )
    for label, fields in changes:
        for version in (0, 1):
            yield beat(f"beats with {label}", "m", version=version, **fields)
            yield from looks(f"{label} in version {version}")


def patterns() -> Iterator[Step]:
    """Regular expressions, resolved beside the requests: an answer is awaited."""
    own: dict[str, Any] = {"subscribed_topic_names": None}
    yield from topics(t=2, u=2)
    yield beat("m joins", "m", 0, **own, subscribed_topic_regex="nothing-.*")
    yield beat("m wants all of its own", "m", subscribed_topic_names=[TOPIC])
    yield beat("a wrong one", "m", subscribed_topic_regex="[")
    yield beat("another wrong one", "m", subscribed_topic_regex="*")
    yield beat("a wrong repetition", "m", subscribed_topic_regex="a{2,1}")
    yield beat("a wrong class", "m", subscribed_topic_regex="[[:no:]]")
    yield beat("an empty one", "m", subscribed_topic_regex="")
    yield beat("p joins with one of topics", "p", 0, **own, subscribed_topic_regex="@[tu]")
    told = beat("p is given", "p", rebalance_timeout_ms=60_000, subscribed_topic_regex="@[tu]", topic_partitions=[])
    yield Step(told.label, told.api, told.version, told.fields, bind=told.bind, until=until_given(2))
    yield from looks("p has topics by a pattern")
    yield beat("p names a topic as well", "p", subscribed_topic_names=[TOPIC, "@no"])
    yield beat("p has no pattern", "p", subscribed_topic_regex="")
    yield from looks("p has topics by name")
    yield beat("n joins with neither", "n", 0, **own, subscribed_topic_regex="")
    yield beat("o joins with a wrong one", "o", 0, **own, subscribed_topic_regex=")")
    yield beat("o joins with a wrong one in version 0", "o", 0, 0, **own, subscribed_topic_regex=")")
    yield from looks("at the end")


def topic_changes() -> Iterator[Step]:
    """Topics that are not there, grow, go, and are made anew."""
    yield from topics(t=2)
    yield beat("m joins", "m", 0, subscribed_topic_names=[TOPIC, "@later"])
    grown = {"topics": [{"name": TOPIC, "count": 3, "assignments": None}], "timeout_ms": 10_000}
    yield Step("grows", ApiKey.CREATE_PARTITIONS, 3, grown)
    told = beat("m is told of more", "m")
    yield Step(told.label, told.api, told.version, told.fields, bind=told.bind, until=until_given(3))
    yield from looks("grown")
    yield Step("goes", ApiKey.DELETE_TOPICS, 6, {"topics": [{"name": TOPIC, "topic_id": None}], "timeout_ms": 10_000})
    yield commit("m commits to what went", "m", version=9)
    yield commit("m commits to what went, by id", "m", version=10)
    yield fetch("m fetches of what went", "m", version=9)
    yield fetch("m fetches of what went, by id", "m", version=10)
    yield from setup.topic("@t", 2, bind="newid")
    told = beat("m is told of the new one", "m", topic_partitions=[])
    yield Step(told.label, told.api, told.version, told.fields, bind=told.bind, until=until_given(2))
    yield from looks("made anew")
    yield commit("m commits to the old id", "m", version=10)
    for version in (9, 10):
        fields = {"name": TOPIC, "topic_id": Ref("newid"), "partition_indexes": [0]}
        yield fetch("m fetches of the new one", "m", version=version, topics=[fields])


def kinds() -> Iterator[Step]:
    """A group of one kind, asked as one of another."""
    yield from topics(t=2)
    yield from setup.offsets()
    yield from setup.member("@classic")
    yield from setup.offsets("@gone")
    joined = {
        "group_id": "@connect",
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "member_id": "",
        "protocol_type": "connect",
        "protocols": [{"name": "default", "metadata": b"x"}],
    }
    yield Step("", ApiKey.JOIN_GROUP, 3, joined)
    for group in (SIMPLE_GROUP, "@classic", "@connect", "@no"):
        for epoch in (1, -1, -2):
            yield beat(f"beats at {epoch} in {group}", "x", epoch, group_id=group, instance_id="i")
    yield beat("joins a group of offsets", "m", 0, group_id=SIMPLE_GROUP)
    yield from looks("a group of offsets", SIMPLE_GROUP)
    yield beat("joins a group of another type", "m", 0, group_id="@connect")
    yield beat("joins a group of a classic member without topics", "m", 0, group_id="@classic")
    yield from looks("a classic group", "@classic")
    yield from looks("a group of another type", "@connect")
    yield beat("m joins", "m", 0)
    place = {"group_id": GROUP, "member_id": "@m", "generation_id": epoch_of("m")}
    yield Step("a classic heartbeat", ApiKey.HEARTBEAT, 4, place)
    yield Step(
        "a classic sync",
        ApiKey.SYNC_GROUP,
        5,
        {**place, "protocol_type": "consumer", "protocol_name": "range", "assignments": []},
    )
    yield Step("a classic leave", ApiKey.LEAVE_GROUP, 5, {"group_id": GROUP, "members": [{"member_id": "@nobody"}]})
    yield Step(
        "a classic leave of a group that is not there",
        ApiKey.LEAVE_GROUP,
        5,
        {"group_id": "@no", "members": [{"member_id": "@m"}]},
    )
    for label, fields in (
        ("of another type", {"protocol_type": "connect"}),
        ("without protocols", {"protocols": []}),
        ("of an unknown protocol", {"protocols": [{"name": "mine", "metadata": SUBSCRIPTION}]}),
        ("as nobody", {"member_id": "@nobody"}),
        ("as a static nobody", {"member_id": "@nobody", "group_instance_id": "i"}),
        ("with a session too long", {"session_timeout_ms": 2_000_000_000}),
    ):
        asked = {
            **joined,
            "group_id": GROUP,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
        }
        yield Step(f"a classic join {label}", ApiKey.JOIN_GROUP, 9, {**asked, **fields})
    yield commit("commits alone", "", -1)
    yield Step("deletes", ApiKey.DELETE_GROUPS, 3, {"groups_names": [GROUP, "@no", SIMPLE_GROUP, "@classic"]})
    yield from _emptied()


def _emptied() -> Iterator[Step]:
    """The group of ``kinds`` loses its offsets, its member, and itself."""
    partitions = [{"partition_index": 0}, {"partition_index": 9}]
    deleted = {
        "group_id": GROUP,
        "topics": [{"name": TOPIC, "partitions": partitions}, {"name": "@no", "partitions": partitions}],
    }
    yield commit("commits", "m")
    yield Step("deletes offsets that it reads", ApiKey.OFFSET_DELETE, 0, deleted)
    yield beat("unsubscribes", "m", subscribed_topic_names=[])
    yield Step("deletes offsets that it reads no more", ApiKey.OFFSET_DELETE, 0, deleted)
    yield fetch("fetches alone", "", -1)
    yield beat("leaves", "m", -1)
    yield from looks("empty")
    yield commit("commits alone to an empty group", "", -1)
    yield commit("commits at 0 to an empty group", "", 0)
    yield Step("deletes offsets of an empty group", ApiKey.OFFSET_DELETE, 0, deleted)
    yield Step("deletes the empty group", ApiKey.DELETE_GROUPS, 3, {"groups_names": [GROUP]})
    yield from looks("deleted")
    yield Step("deletes it again", ApiKey.DELETE_GROUPS, 3, {"groups_names": [GROUP]})
    yield beat("beats in a group that is deleted", "m", 1)
    for types in (["consumer"], ["Consumer"], ["classic"], ["share"], ["unknown"], ["consumer", "nothing"]):
        for states in ([], ["Empty"], ["stable"], ["Assigning", "Reconciling"], ["Dead"]):
            yield Step(f"lists {types} {states}", ApiKey.LIST_GROUPS, 5, {"types_filter": types, "states_filter": states})


def transactions() -> Iterator[Step]:
    """Offsets that a transaction commits, of a member and of nobody."""
    yield from topics(t=2)
    yield from setup.producer()
    yield beat("m joins", "m", 0, subscribed_topic_names=[])
    yield beat("m subscribes", "m", subscribed_topic_names=[TOPIC])
    producer = {"transactional_id": setup.TRANSACTIONAL_ID, "producer_id": Ref("pid", 0), "producer_epoch": Ref("epoch", 0)}
    yield Step("", ApiKey.ADD_OFFSETS_TO_TXN, 3, {**producer, "group_id": GROUP}, until=("error_code", (0,)))
    offset = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "m", "committed_leader_epoch": -1}
    for version in (2, 3, 4, 5, 6):
        for who, epoch in (
            ("@m", 0),
            ("@m", -1),
            ("@m", 1),
            ("@m", 2),
            ("@m", 3),
            ("@nobody", 1),
            ("", -1),
            ("", 2),
            ("@nobody", -1),
        ):
            fields = {**producer, "group_id": GROUP, "generation_id_or_member_epoch": epoch, "member_id": who}
            fields["topics"] = [{"name": TOPIC, "topic_id": Ref("tid"), "partitions": [offset]}]
            yield Step(f"{who!r} at {epoch}", ApiKey.TXN_OFFSET_COMMIT, version, fields)
    yield fetch("fetches what is pending", "m")
    yield Step("ends", ApiKey.END_TXN, 3, {**producer, "committed": True}, until=("error_code", (0,)))


_NAMES = ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", "consumer.assignment.interval.ms")


def configs() -> Iterator[Step]:
    """The configs of a group: what is taken, what not, and what members are told of it."""
    yield from topics(t=2)
    yield beat("m joins", "m", 0)
    for name in (*_NAMES, "share.session.timeout.ms", "streams.session.timeout.ms", "no.such", ""):
        for value in ("50000", "6000", "5000", "1", "0", "-1", "70000", "2147483648", "x", "", None):
            yield alter(f"sets {name}={value}", [(name, value, SET)])
        for operation in (DELETE, 2, 3):
            yield alter(f"{operation} of {name}", [(name, "1", operation)])
    yield alter("sets two", [(_NAMES[0], "55000", SET), (_NAMES[1], "7000", SET)])
    yield alter("sets one of two wrong", [(_NAMES[0], "50000", SET), (_NAMES[1], "1", SET)])
    yield alter("sets one twice", [(_NAMES[0], "50000", SET), (_NAMES[0], "51000", SET)])
    yield alter("sets of no group", [(_NAMES[0], "50000", SET)], group="")
    yield alter("sets of a group that is not there", [(_NAMES[0], "50000", SET)], group="@no")
    for synonyms in (False, True):
        for group in (GROUP, "@no", "@never", ""):
            for keys in (None, [], [_NAMES[0], "no.such"]):
                resources = [{"resource_type": GROUP_RESOURCE, "resource_name": group, "configuration_keys": keys}]
                asked = {"resources": resources, "include_synonyms": synonyms, "include_documentation": False}
                yield Step(f"describes {keys} of {group} {synonyms}", ApiKey.DESCRIBE_CONFIGS, 4, asked)
    told = beat(
        "is told of the interval", "m", rebalance_timeout_ms=60_000, subscribed_topic_names=[TOPIC], topic_partitions=owned(0, 1)
    )
    yield Step(told.label, told.api, told.version, told.fields, until=("heartbeat_interval_ms", (7000,)))
    for version in (0, 1, 2):
        resources = [{"resource_type": GROUP_RESOURCE, "resource_name": GROUP, "configs": [{"name": _NAMES[1], "value": "8000"}]}]
        yield Step("replaces all", ApiKey.ALTER_CONFIGS, version, {"resources": resources, "validate_only": False})
    yield Step("lists", ApiKey.LIST_CONFIG_RESOURCES, 1, {"resource_types": [GROUP_RESOURCE]})
    yield alter("deletes", [(_NAMES[1], None, DELETE)])
    yield alter("deletes of another", [(_NAMES[0], None, DELETE)], group="@no")
    yield Step("lists again", ApiKey.LIST_CONFIG_RESOURCES, 1, {"resource_types": [GROUP_RESOURCE]})


def feature_off() -> Iterator[Step]:
    """With ``group.version`` at 0, and on again."""
    yield from topics(t=2)
    yield beat("m joins", "m", 0)
    updates = [
        [{"feature": "group.version", "max_version_level": level, "upgrade_type": kind}] for level, kind in ((0, 2), (1, 1))
    ]
    yield Step(
        "goes off", ApiKey.UPDATE_FEATURES, 2, {"timeout_ms": 10_000, "feature_updates": updates[0], "validate_only": False}
    )
    refused = beat("refused", "m")
    yield Step(refused.label, refused.api, refused.version, refused.fields, until=("error_code", (35,)))
    for version in (0, 1):
        for epoch in (-2, -1, 0, 1):
            yield beat(f"beats at {epoch}", "m", epoch, version)
            yield beat(f"beats at {epoch} in no group", "m", epoch, version, group_id="")
        yield Step("describes", ApiKey.CONSUMER_GROUP_DESCRIBE, version, {"group_ids": [GROUP, "@no", ""]})
    yield from looks("off")
    yield commit("commits", "m")
    yield fetch("fetches", "m")
    yield Step(
        "goes on", ApiKey.UPDATE_FEATURES, 2, {"timeout_ms": 10_000, "feature_updates": updates[1], "validate_only": False}
    )
    served = beat("served", "m")
    yield Step(served.label, served.api, served.version, served.fields, until=("error_code", (0,)))
    yield from looks("on")


STORIES: tuple[Callable[[], Iterator[Step]], ...] = (
    form,
    epochs,
    static,
    becomes_static,
    revocation,
    partial,
    patterns,
    topic_changes,
    kinds,
    transactions,
    configs,
    feature_off,
)


def scripts() -> Iterator[Script]:
    """One for each story."""
    for story in STORIES:
        yield Script(f"consumers/{story.__name__}", tuple(story()))
