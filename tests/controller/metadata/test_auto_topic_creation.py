"""Topics that clients ask for are created in slices, once, and not without end."""

from collections import deque

import pytest

from odradek.common.context import RequestContext, Session
from odradek.common.logging import LineLimit
from odradek.controller.metadata.auto_topic_creation import AutoTopicCreation
from odradek.controller.metadata.decisions import MAX_PARTITIONS_PER_REQUEST, TopicResult
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.clock import VirtualClock
from odradek.timing.reply import Reply
from odradek.timing.slices import SLICE_MS, Slices

METADATA = RequestContext(ApiKey.METADATA, 12, 7, "client", Session("PLAINTEXT", ("127.0.0.1", 1)))


class Setup:
    """A controller that notes what it is to create, under a clock of which each reading takes ``step_ms``."""

    def __init__(self, step_ms=SLICE_MS, partitions=1):
        self.now_ms = 0.0
        self.step_ms = step_ms
        self.soon = deque()
        self.asked = []
        self.contexts = []
        self.takes = []
        self.errors = {}
        self.creation = AutoTopicCreation(
            self,
            partitions,
            Slices(self.read, self.soon.append),
            take_of=lambda context: ("of", context.client_id),
            line_limit=LineLimit(VirtualClock()),
        )

    def read(self):
        self.now_ms += self.step_ms
        return self.now_ms

    def create(self, names, client_id="client"):
        return self.creation.create(names, RequestContext(ApiKey.METADATA, 12, 7, client_id, METADATA.session))

    def auto_create(self, names, context, take):
        self.asked.append(list(names))
        self.contexts.append(context)
        self.takes.append(take)
        reply = Reply()
        reply.complete([TopicResult(name=name, error=self.errors.get(name)) for name in names])
        return reply

    def turns(self):
        while self.soon:
            self.soon.popleft()()

    @property
    def created(self):
        return [name for names in self.asked for name in names]


def names(count, prefix="t"):
    return [f"{prefix}{number}" for number in range(count)]


def test_few_topics_are_created_before_the_answer():
    setup = Setup(step_ms=0)
    assert setup.create(names(100)) == {}
    assert setup.created == names(100)


def test_of_many_a_first_batch_is_created_at_once_and_the_others_in_turns_of_the_loop():
    setup = Setup()
    setup.create(names(100))
    assert setup.created == names(4)
    setup.turns()
    assert setup.created == names(100)


def test_topics_of_many_partitions_are_created_one_by_one():
    setup = Setup(partitions=100)
    setup.create(names(3))
    setup.turns()
    assert setup.asked == [["t0"], ["t1"], ["t2"]]


def test_what_is_in_flight_is_not_created_twice():
    setup = Setup()
    setup.create(names(100))
    setup.create(names(100))
    setup.turns()
    assert setup.created == names(100)


@pytest.mark.parametrize("partitions", [1, 10])
def test_no_more_are_in_flight_than_kafka_creates_for_one_request(partitions):
    setup = Setup(partitions=partitions)
    most = MAX_PARTITIONS_PER_REQUEST // partitions
    setup.create(names(most + 100))
    setup.turns()
    assert setup.created == names(most)


def test_what_cannot_be_created_is_told_where_it_is_known():
    setup = Setup(step_ms=0)
    setup.errors["t1"] = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert setup.create(["t0", "t1", "no way"]) == {
        "t1": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "no way": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert setup.created == ["t0", "t1"]


def test_a_controller_that_fails_is_asked_again():
    setup = Setup(step_ms=0)
    answer = setup.auto_create
    setup.auto_create = lambda *_: 1 / 0
    setup.create(["t0"])
    setup.auto_create = answer
    setup.create(["t0"])
    assert setup.created == ["t0"]


def test_topics_are_created_as_if_their_client_had_sent_create_topics():
    setup = Setup(step_ms=0)
    setup.create(["t0"], client_id="me")
    (context,) = setup.contexts
    assert (context.api_key, context.version, context.client_id) == (ApiKey.CREATE_TOPICS, 7, "me")
    assert context.session is METADATA.session
    assert setup.takes == [("of", "me")]


def test_topics_of_two_clients_are_not_created_together():
    setup = Setup()
    setup.create(names(10, "a"), client_id="a")
    setup.create(["a8", "b0", "b1"], client_id="b")
    setup.turns()
    assert setup.asked == [["a0", "a1", "a2", "a3"], ["a4", "a5", "a6", "a7"], ["a8", "a9"], ["b0", "b1"]]
    assert setup.takes == [("of", "a")] * 3 + [("of", "b")]


def test_a_topic_above_the_quota_is_told_as_one_that_is_not_there_and_asked_for_again(capsys):
    setup = Setup(step_ms=0)
    setup.errors["t1"] = KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    assert setup.create(["t0", "t1"]) == {}
    (line,) = capsys.readouterr().err.splitlines()
    assert all(word in line for word in ("topic not created", "t1", "client", "User:ANONYMOUS"))
    setup.create(["t1"])
    assert setup.asked == [["t0", "t1"], ["t1"]]
