"""The two ends of a fetch session agree on what is fetched, whatever is lost on the way."""

from random import Random
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from odradek.broker.replica.fetch_sessions import FetchSessions
from odradek.broker.replica.replica_fetcher import FetchSessionHandler
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import fetch

TOPICS = UUID(int=1), UUID(int=2)
KEYS = st.tuples(st.sampled_from(TOPICS), st.integers(0, 2))


def asked(key, offset):
    return fetch.FetchPartition(partition=key[1], fetch_offset=offset, partition_max_bytes=1)


def request_of(session):
    return fetch.FetchRequest(
        session_id=session.session_id,
        session_epoch=session.session_epoch,
        topics=session.topics,
        forgotten_topics_data=session.forgotten,
    )


def test_a_second_fetch_names_only_what_has_changed():
    handler, sessions = FetchSessionHandler(), FetchSessions(1, Random(1))
    first, second = (TOPICS[0], 0), (TOPICS[1], 0)
    handler.want(first, asked(first, 0))
    handler.want(second, asked(second, 0))
    full = handler.build()
    assert (full.session_id, full.session_epoch, len(full.topics)) == (0, 0, 2)
    context = sessions.open(request_of(full), True, 0)
    context.select([(partition, fetch.PartitionData()) for partition in context.partitions])
    assert handler.answered(0, context.session_id)
    handler.want(first, asked(first, 5))
    handler.want(second, asked(second, 0))
    later = handler.build()
    assert (later.session_id, later.session_epoch) == (context.session_id, 1)
    assert later.topics == [fetch.FetchTopic(topic_id=TOPICS[0], partitions=[asked(first, 5)])]
    assert later.forgotten == []


def test_without_a_session_every_fetch_names_all():
    handler = FetchSessionHandler()
    key = TOPICS[0], 0
    handler.want(key, asked(key, 0))
    for _ in range(2):
        session = handler.build()
        assert (session.session_id, session.session_epoch, len(session.topics)) == (0, 0, 1)
        assert handler.answered(0, 0)


class Ends(RuleBasedStateMachine):
    """A follower and a leader with one slot for a session, which others take."""

    def __init__(self):
        super().__init__()
        self.handler = FetchSessionHandler()
        self.sessions = FetchSessions(1, Random(1), eviction_ms=0)
        self.wanted = {}
        self.now_ms = 0

    @rule(key=KEYS, offset=st.integers(0, 9))
    def want(self, key, offset):
        self.wanted[key] = asked(key, offset)
        self.handler.want(key, self.wanted[key])

    @rule(key=KEYS)
    def leave(self, key):
        self.wanted.pop(key, None)
        self.handler.want(key, None)

    @rule()
    def another_takes_the_slot(self):
        self.now_ms += 1
        other = fetch.FetchRequest(
            session_epoch=0, topics=[fetch.FetchTopic(topic_id=TOPICS[0], partitions=[asked((TOPICS[0], 9), 0)])]
        )
        self.sessions.open(other, True, self.now_ms).select([])

    @rule(outcome=st.sampled_from(("answered", "request lost", "response lost")))
    def fetch(self, outcome):
        self.now_ms += 1
        assert self.handler.is_empty is not bool(self.wanted)
        if not self.wanted:
            return
        request = request_of(self.handler.build())
        if outcome == "request lost":
            self.handler.lost()
            return
        context = self.sessions.open(request, True, self.now_ms)
        if not context.error_code:
            named = {(each.topic_key, each.partition): each.fetch_offset for each in context.partitions}
            assert named == {key: partition.fetch_offset for key, partition in self.wanted.items()}
            context.select([(partition, fetch.PartitionData()) for partition in context.partitions])
        if outcome == "response lost":
            self.handler.lost()
        else:
            assert self.handler.answered(context.error_code, context.session_id) is (context.error_code == ErrorCode.NONE)

    @rule()
    def a_fetch_after_an_error_is_answered(self):
        """However things stand, two fetches get through."""
        if self.wanted:
            for _ in range(2):
                context = self.sessions.open(request_of(self.handler.build()), True, self.now_ms)
                context.select([(partition, fetch.PartitionData()) for partition in context.partitions])
                if self.handler.answered(context.error_code, context.session_id):
                    return
            raise AssertionError(context.error_code)


Ends.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestEnds = Ends.TestCase
