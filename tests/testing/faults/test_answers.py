"""The answer with an error has it in its place, for every API and version that is served."""

import pytest

from odradek.broker.api import SERVED
from odradek.common.context import RequestContext, Session
from odradek.protocol.api_keys import NEWEST_VERSION, ApiKey
from odradek.protocol.broker_codecs import response_encoder
from odradek.protocol.error_codes_in import compile_error_scan
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import load, messages
from odradek.testing import SocketlessBroker
from odradek.testing.faults.request import ANSWERED_FIRST, Request, answer_error, can_divide, joined, without
from odradek.timing.clock import VirtualClock

CODE = ErrorCode.POLICY_VIOLATION
APIS = [api_key for api_key in SERVED if api_key not in ANSWERED_FIRST]
NAMES = {"name": "orders", "topic": "orders", "topic_name": "orders", "group_id": "billing", "transactional_id": "pay"}


class Tally:
    def __init__(self):
        self.codes = []

    def note_error(self, code):
        self.codes.append(code)


def item_of(api_key, layout, topic_id):
    """A struct of a request, with one item in each array. A topic without a name has ``topic_id``."""
    values = {}
    cls = messages(api_key).classes["request"].get(layout.name)
    for spec in layout.fields:
        if spec.is_array:
            values[spec.name] = [
                item_of(api_key, spec.layout, topic_id) if spec.layout else "billing" if spec.kafka_type == "string" else 1
            ]
        elif spec.name in NAMES:
            values[spec.name] = NAMES[spec.name]
    for field in cls._fields:
        if field in NAMES:
            values.setdefault(field, NAMES[field])
    if "topic_id" in cls._fields and not NAMES.keys() & set(cls._fields):
        values["topic_id"] = topic_id
    return cls(**{field: value for field, value in values.items() if field in cls._fields})


def request_of(core, api_key, version):
    if api_key == ApiKey.PRODUCE:
        message = messages(api_key).request(acks=-1, topics=[("orders", [(1, b"")])])
    else:
        message = item_of(
            api_key, load(api_key, NEWEST_VERSION[api_key], "request"), core.controller.image.topics["orders"].topic_id
        )
    return Request(core, RequestContext(api_key, version, 1, "client", Session("PLAINTEXT", ("10.0.0.1", 5))), message)


@pytest.fixture(scope="module")
def core():
    with SocketlessBroker(clock=VirtualClock(), background="inline") as broker:
        broker.core.controller.auto_create(["orders"])
        yield broker.core


@pytest.mark.parametrize("api_key", APIS, ids=lambda api_key: api_key.name)
def test_an_answer_has_the_error_and_can_be_sent_in_every_version(core, api_key):
    served = SERVED[api_key]
    for version in range(served.min_version, served.max_version + 1):
        response = answer_error(request_of(core, api_key, version), CODE, None)
        tally = Tally()
        compile_error_scan(api_key)(response, tally)
        assert tally.codes, f"version {version}: {response}"
        assert set(tally.codes) == {CODE}
        assert response_encoder(api_key, version)(1, response)


DIVIDED = [api_key for api_key in APIS if can_divide(api_key)]


@pytest.mark.parametrize("api_key", DIVIDED, ids=lambda api_key: api_key.name)
def test_a_request_of_which_all_is_meant_leaves_nothing_and_one_of_which_nothing_is_stays(core, api_key):
    request = request_of(core, api_key, SERVED[api_key].max_version)
    assert without(request, lambda topic, partition: topic == "orders") is None
    assert without(request, lambda topic, partition: False) is not None


def test_the_answers_to_two_parts_of_a_request_are_one_topic(core):
    request = request_of(core, ApiKey.PRODUCE, 9)
    errors = answer_error(request, CODE, None)
    topic = errors.responses[0]
    taken = errors._replace(
        responses=[topic._replace(partition_responses=[topic.partition_responses[0]._replace(index=0, error_code=0)])]
    )
    [both] = joined(ApiKey.PRODUCE, taken, errors).responses
    assert [(each.index, each.error_code) for each in both.partition_responses] == [(0, 0), (1, CODE)]


def test_a_request_says_what_it_is_about(core):
    offsets = request_of(core, ApiKey.TXN_OFFSET_COMMIT, 5)
    assert (offsets.groups, offsets.transactional_ids, offsets.topics) == (["billing"], ["pay"], ["orders"])
    added = request_of(core, ApiKey.ADD_PARTITIONS_TO_TXN, 3)
    assert (added.transactional_ids, added.partitions) == (["pay"], [("orders", 1)])
    message = messages(ApiKey.FIND_COORDINATOR).request(key_type=1, coordinator_keys=["pay"])
    found = Request(core, added.context.__class__(ApiKey.FIND_COORDINATOR, 4, 1, None, added.context.session), message)
    assert (found.groups, found.transactional_ids) == ([], ["pay"])
