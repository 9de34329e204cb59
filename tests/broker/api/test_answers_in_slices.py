"""Answers that may be large, whatever the size of their requests: they are made in slices, while there is room for them."""

from collections import deque
from itertools import count

import pytest
import pytest_asyncio

from odradek.broker.large import NoRoom, ResponseMemory, answer_in_slices, each_once, with_pauses
from odradek.broker.security.acl.rules import GuardedRequest, keep_visible
from odradek.common.context import CLOSE_CONNECTION, RequestContext, Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from odradek.timing.clock import VirtualClock
from odradek.timing.slices import SLICE_MS, Slices
from odradek.timing.timer import Timer
from tests.broker.api.acl_requests import creation
from tests.broker.api.in_process import Node, new_broker
from tests.raw_client import decode_response, encode_request

MANY = 600
NAMES = [f"n{number:03}" for number in range(MANY)]
ANY_ACL = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
ALL_OFFSETS = [{"group_id": "g", "topics": None}]


def partitions(topics):
    return [partition for topic in topics for partition in topic.partitions]


# Each has at least MANY items in its answer: (API, version, what is asked, those items).
LARGE = {
    "Metadata of all": (ApiKey.METADATA, 9, {"topics": None}, lambda r: partitions(r.topics)),
    "Metadata of one": (ApiKey.METADATA, 9, {"topics": [{"name": "wide"}]}, lambda r: partitions(r.topics)),
    "Metadata of some": (ApiKey.METADATA, 9, {"topics": [{"name": f"t{n}"} for n in range(4)]}, lambda r: partitions(r.topics)),
    "DescribeTopicPartitions": (
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        {"topics": [{"name": "wide"}], "response_partition_limit": MANY},
        lambda r: partitions(r.topics),
    ),
    "DescribeLogDirs": (ApiKey.DESCRIBE_LOG_DIRS, 4, {"topics": None}, lambda r: partitions(r.results[0].topics)),
    "DescribeAcls": (ApiKey.DESCRIBE_ACLS, 3, ANY_ACL, lambda r: r.resources),
    "DescribeClientQuotas": (ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, {}, lambda r: r.entries),
    "DescribeUserScramCredentials": (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": None}, lambda r: r.results),
    "ListGroups": (ApiKey.LIST_GROUPS, 4, {}, lambda r: r.groups),
    "ListConfigResources": (ApiKey.LIST_CONFIG_RESOURCES, 1, {"resource_types": [32]}, lambda r: r.config_resources),
    "OffsetFetch": (ApiKey.OFFSET_FETCH, 8, {"groups": ALL_OFFSETS}, lambda r: partitions(r.groups[0].topics)),
    "OffsetFetch of stable offsets": (
        ApiKey.OFFSET_FETCH,
        8,
        {"groups": ALL_OFFSETS, "require_stable": True},
        lambda r: partitions(r.groups[0].topics),
    ),
}

pytestmark = pytest.mark.xdist_group("answers-in-slices")


async def ask(node, api_key, version, **fields):
    frame = await node.broker.ask_bytes(encode_request(api_key, version, **fields)[4:])
    return decode_response(api_key, version, frame)[1]


async def make_large(node):
    """Have it there."""
    for name, partition_count in (("wide", MANY), *((f"t{number}", 200) for number in range(4))):
        await node.create(name, partition_count)
    acls = [creation(f"allow User:a READ TOPIC {name}")._asdict() for name in NAMES]
    await ask(node, ApiKey.CREATE_ACLS, 3, creations=acls)
    quotas = [
        {
            "entity": [{"entity_type": "user", "entity_name": name}],
            "ops": [{"key": "consumer_byte_rate", "value": 1e9, "remove": False}],
        }
        for name in NAMES
    ]
    await ask(node, ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=quotas, validate_only=False)
    scram = {"mechanism": 1, "iterations": 4096, "salt": bytes(16), "salted_password": bytes(32)}
    users = [{"name": name, **scram} for name in NAMES]
    await ask(node, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=[], upsertions=users)
    configs = [{"name": "consumer.session.timeout.ms", "config_operation": 0, "value": "46000"}]
    resources = [{"resource_type": 32, "resource_name": name, "configs": configs} for name in NAMES]
    await ask(node, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources, validate_only=False)
    await ask(node, ApiKey.FIND_COORDINATOR, 3, key="g", key_type=0)
    await node.broker.settle()
    for group, indexes in (("g", range(MANY)), *((name, (0,)) for name in NAMES)):
        offsets = [{"partition_index": index, "committed_offset": 1} for index in indexes]
        member = {"generation_id_or_member_epoch": -1, "member_id": ""}
        await ask(node, ApiKey.OFFSET_COMMIT, 8, group_id=group, **member, topics=[{"name": "wide", "partitions": offsets}])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def large():
    settings = {"authorizer_class_name": "StandardAuthorizer", "super_users": "User:ANONYMOUS"}
    async with new_broker(**settings) as broker:
        node = Node(broker)
        await make_large(node)
        ticks = count()
        # Each look at the clock takes as long as a slice.
        broker.core.slices = Slices(lambda: SLICE_MS * next(ticks), broker.core.call_soon)
        yield node


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("asked", LARGE)
async def test_a_large_answer_to_a_small_request_is_made_in_slices(large, asked):
    api_key, version, fields, items_of = LARGE[asked]
    before = large.core.slices.slices

    answer = await ask(large, api_key, version, **fields)

    assert len(items_of(answer)) >= MANY
    assert large.core.slices.slices - before >= 3


class Services:
    """The services of work in slices. Each look at the clock takes as long as a slice."""

    def __init__(self, limit_bytes=100):
        self.soon = deque()
        self.clock = VirtualClock()
        ticks = count()
        self.slices = Slices(lambda: SLICE_MS * next(ticks), self.soon.append)
        self.response_memory = ResponseMemory(
            limit_bytes, Timer(self.clock), self.clock.monotonic_ms, self.soon.append, lambda: None
        )

    def fill(self):
        """Have others' responses take the memory."""
        held = self.response_memory.begin(Session("PLAINTEXT", ("10.0.0.2", 1)))
        self.response_memory.grow(held, 100)
        self.response_memory.written(held)
        return held

    def turns(self):
        while self.soon:
            self.soon.popleft()()


def steps(made, last):
    for step in range(last):
        made.append(step)
        yield None
    return "done"


def context(connection=None):
    session = Session("PLAINTEXT", ("10.0.0.1", 1))
    session.connection = connection
    return RequestContext(ApiKey.LIST_GROUPS, 4, 7, "client", session)


def test_long_work_waits_while_others_have_the_memory_of_responses_and_short_work_does_not():
    services = Services()
    held = services.fill()
    made = []
    reply = answer_in_slices(services, context(), steps(made, 9))
    short = answer_in_slices(services, context(), steps([], 0))
    services.turns()
    assert short.response == "done"
    assert not reply.done
    assert len(made) == 1

    held.release()
    services.turns()
    assert reply.response == "done"


def test_work_that_finds_no_memory_for_half_a_minute_is_given_up():
    services = Services()
    services.fill()
    reply = answer_in_slices(services, context(), steps([], 9))
    services.turns()
    services.clock.advance(30_000)
    services.turns()
    assert isinstance(reply.response, NoRoom)


def test_work_whose_client_is_gone_is_given_up():
    services = Services()
    asked = context(connection=object())
    made = []
    reply = answer_in_slices(services, asked, steps(made, 9))
    asked.session.connection = None
    services.turns()
    assert reply.response is CLOSE_CONNECTION
    assert len(made) == 1


def test_a_fault_of_work_that_is_done_at_once_is_raised():
    with pytest.raises(ZeroDivisionError):
        answer_in_slices(Services(), context(), with_pauses([0], lambda item: 1 // item))


def test_items_are_made_in_their_order_and_each_once():
    services = Services()
    reply = answer_in_slices(services, context(), with_pauses(range(MANY), str))
    services.turns()
    assert reply.response == [str(number) for number in range(MANY)]

    made = []

    def make(item):
        made.append(item)
        yield None
        return item.upper()

    reply = answer_in_slices(services, context(), each_once("abaab", make))
    services.turns()
    assert (reply.response, made) == (list("ABAAB"), ["a", "b"])


def test_an_authorizer_is_asked_about_many_items_in_slices():
    services = Services()
    listed = ListGroupsResponse(groups=[ListedGroup(group_id=name) for name in NAMES])
    asked = GuardedRequest(None, services, context(), ListGroupsRequest(), lambda services, context, request: listed)
    reply = keep_visible(asked, asked.handle(), "groups", lambda group: group.group_id != "n007")
    assert not reply.done
    services.turns()
    assert [group.group_id for group in reply.response.groups] == [name for name in NAMES if name != "n007"]
