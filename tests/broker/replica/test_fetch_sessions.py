"""Fetch sessions: what a consumer need not say again, and what it need not be told again (KIP-227)."""

from random import Random
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.broker.replica.fetch_sessions import MAX_EPOCH, FetchSessions, ReadableSessions, next_epoch
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages

fetch = messages(ApiKey.FETCH)
EVICTION_MS = 120_000
ORDERS, PAYMENTS = UUID(int=1), UUID(int=2)


def asked(partition, fetch_offset=0, **fields):
    return fetch.FetchPartition(partition=partition, fetch_offset=fetch_offset, partition_max_bytes=1_000, **fields)


def request(session_id=0, session_epoch=0, topics=(), forgotten=(), by_name=False):
    """`topics` and `forgotten` are pairs of a topic key and its partitions, bare numbers or made by `asked`."""
    field = "topic" if by_name else "topic_id"
    return fetch.FetchRequest(
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[
            fetch.FetchTopic(**{field: key, "partitions": [asked(p) if isinstance(p, int) else p for p in partitions]})
            for key, partitions in topics
        ],
        forgotten_topics_data=[fetch.ForgottenTopic(**{field: key, "partitions": tuple(ps)}) for key, ps in forgotten],
    )


def data(high_watermark=10, log_start_offset=0, records=b"", error_code=0, diverging=-1):
    return fetch.PartitionData(
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        records=records,
        error_code=error_code,
        diverging_epoch=fetch.EpochEndOffset(epoch=diverging),
    )


def names(partitions):
    return [(partition.topic_key, partition.partition) for partition in partitions]


def results(context, **by_partition):
    return [(partition, by_partition.get(f"p{partition.partition}", data())) for partition in context.partitions]


def numbers(selected):
    return [partition.partition for partition, _ in selected]


def answer(context, **by_partition):
    """The numbers of the partitions selected; `p3=data(...)` gives partition 3's result, the others have nothing new."""
    return numbers(context.select(results(context, **by_partition)))


@pytest.fixture
def sessions():
    return FetchSessions(3, Random(4))


def begin(sessions, topics=((ORDERS, (0, 1, 2)),), now_ms=0, by_name=False):
    context = sessions.open(request(topics=topics, by_name=by_name), not by_name, now_ms)
    answer(context)
    return context.session_id


# --- Beginning and ending


def test_a_full_fetch_is_answered_whole_and_gets_a_session(sessions):
    context = sessions.open(request(topics=[(ORDERS, (0, 1)), (PAYMENTS, (0,))]), True, 0)
    assert names(context.partitions) == [(ORDERS, 0), (ORDERS, 1), (PAYMENTS, 0)]
    found = results(context)
    assert context.select(found) == found
    assert 0 < context.session_id < 2**31
    assert (len(sessions), sessions.partitions_cached) == (1, 3)


def test_a_full_fetch_that_is_never_answered_takes_no_slot(sessions):
    sessions.open(request(topics=[(ORDERS, (0,))]), True, 0)
    assert len(sessions) == 0


def test_what_was_asked_is_passed_on(sessions):
    wanted = asked(7, fetch_offset=42, current_leader_epoch=3, last_fetched_epoch=2, log_start_offset=9)
    (partition,) = sessions.open(request(topics=[(ORDERS, (wanted,))]), True, 0).partitions
    assert (partition.topic_key, partition.partition, partition.fetch_offset, partition.max_bytes) == (ORDERS, 7, 42, 1_000)
    assert (partition.current_leader_epoch, partition.last_fetched_epoch, partition.log_start_offset) == (3, 2, 9)


def test_a_fetch_with_the_final_epoch_is_answered_whole_without_a_session(sessions):
    context = sessions.open(request(session_epoch=-1, topics=[(ORDERS, (0, 1))]), True, 0)
    assert answer(context) == [0, 1]
    assert (context.session_id, context.error_code, len(sessions)) == (0, 0, 0)


@pytest.fixture
def session_id(sessions):
    return begin(sessions)


def test_the_final_epoch_closes_the_session(session_id, sessions):
    context = sessions.open(request(session_id, -1), True, 0)
    assert (list(context.partitions), context.session_id, context.error_code) == ([], 0, 0)
    assert (len(sessions), sessions.partitions_cached) == (0, 0)
    assert sessions.open(request(session_id, 1), True, 0).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_full_fetch_closes_the_session_it_names_and_gets_another(sessions):
    old_id = begin(sessions)
    context = sessions.open(request(old_id, 0, [(ORDERS, (5,))]), True, 0)
    answer(context)
    assert context.session_id not in (0, old_id)
    assert (len(sessions), sessions.partitions_cached) == (1, 1)


def test_a_partition_named_twice_counts_once_with_its_last_offset(sessions):
    context = sessions.open(request(topics=[(ORDERS, (asked(0, 5), 1)), (ORDERS, (asked(0, 6),))]), True, 0)
    assert [(partition.partition, partition.fetch_offset) for partition in context.partitions] == [(0, 6), (1, 0)]


def test_ids_already_taken_are_drawn_again():
    class FewIds(Random):
        def randint(self, a, b):
            return drawn.pop()

    drawn = [8, 7, 7, 7]
    sessions = FetchSessions(10, FewIds())
    assert [begin(sessions), begin(sessions)] == [7, 8]
    assert drawn == []


# --- Refusals


def test_an_unknown_session_is_refused(sessions):
    context = sessions.open(request(5, 1, [(ORDERS, (0,))]), True, 0)
    assert (context.error_code, context.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert list(context.partitions) == []


def test_an_incremental_fetch_without_a_session_id_is_refused(sessions):
    assert sessions.open(request(0, 1), True, 0).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [2, -2, MAX_EPOCH])
def test_a_wrong_epoch_is_refused_and_changes_nothing(session_id, sessions, epoch):
    context = sessions.open(request(session_id, epoch, [(PAYMENTS, (0,))], [(ORDERS, (0,))]), True, 0)
    assert (context.error_code, context.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    again = sessions.open(request(session_id, 1), True, 0)
    assert names(again.partitions) == [(ORDERS, 0), (ORDERS, 1), (ORDERS, 2)]


def test_an_epoch_is_good_for_one_request(session_id, sessions):
    answer(sessions.open(request(session_id, 1), True, 0))
    assert sessions.open(request(session_id, 1), True, 0).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert sessions.open(request(session_id, 2), True, 0).error_code == ErrorCode.NONE


@pytest.mark.parametrize("began_by_name", [True, False])
def test_a_session_does_not_switch_between_names_and_ids(sessions, began_by_name):
    session_id = begin(sessions, [("orders" if began_by_name else ORDERS, (0,))], by_name=began_by_name)
    context = sessions.open(request(session_id, 1, by_name=not began_by_name), began_by_name, 0)
    assert context.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert sessions.open(request(session_id, 1, by_name=began_by_name), not began_by_name, 0).error_code == ErrorCode.NONE


def test_topics_are_kept_by_name_before_there_were_ids(sessions):
    session_id = begin(sessions, [("orders", (0, 1)), ("payments", (0,))], by_name=True)
    context = sessions.open(request(session_id, 1, [("payments", (1,))], [("orders", (0,))], by_name=True), False, 0)
    assert names(context.partitions) == [("orders", 1), ("payments", 0), ("payments", 1)]


def test_a_request_that_overtakes_one_in_waiting_makes_its_answer_an_epoch_error(session_id, sessions):
    waiting = sessions.open(request(session_id, 1), True, 0)
    overtaking = sessions.open(request(session_id, 2), True, 0)
    assert answer(waiting, p0=data(records=b"new")) == []
    assert (waiting.error_code, waiting.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id)
    assert answer(overtaking, p0=data(records=b"new")) == [0]
    assert overtaking.error_code == ErrorCode.NONE


def test_the_greatest_epoch_is_followed_by_1():
    assert [next_epoch(0), next_epoch(1), next_epoch(MAX_EPOCH)] == [1, 2, 1]


def test_a_session_lives_on_past_the_greatest_epoch(session_id, sessions):
    sessions._sessions[session_id].epoch = MAX_EPOCH
    assert sessions.open(request(session_id, MAX_EPOCH), True, 0).error_code == ErrorCode.NONE
    assert sessions.open(request(session_id, 1), True, 0).error_code == ErrorCode.NONE


# --- What a session remembers


def test_an_incremental_fetch_changes_what_it_names_and_keeps_the_rest(session_id, sessions):
    topics = [(ORDERS, (asked(1, 55),)), (PAYMENTS, (asked(0, 7),))]
    context = sessions.open(request(session_id, 1, topics, [(ORDERS, (0, 99)), (UUID(int=9), (0,))]), True, 0)
    assert context.session_id == session_id
    assert names(context.partitions) == [(ORDERS, 1), (ORDERS, 2), (PAYMENTS, 0)]
    assert [partition.fetch_offset for partition in context.partitions] == [55, 0, 7]
    assert sessions.partitions_cached == 3


def test_a_partition_forgotten_and_added_again_is_told_anew(session_id, sessions):
    answer(sessions.open(request(session_id, 1, (), [(ORDERS, (0,))]), True, 0))
    assert answer(sessions.open(request(session_id, 2, [(ORDERS, (0,))]), True, 0)) == [0]


def test_a_session_that_forgets_everything_ends(session_id, sessions):
    context = sessions.open(request(session_id, 1, (), [(ORDERS, (0, 1, 2))]), True, 0)
    assert (context.session_id, context.error_code, list(context.partitions)) == (0, 0, [])
    assert (len(sessions), sessions.partitions_cached) == (0, 0)


def test_partitions_added_and_forgotten_in_the_request_that_ends_a_session_are_answered_without_one(sessions):
    session_id = begin(sessions, [(ORDERS, (0,))])
    context = sessions.open(request(session_id, 1, [(PAYMENTS, (4,))], [(ORDERS, (0,)), (PAYMENTS, (4,))]), True, 0)
    assert answer(context) == [4]
    assert (context.session_id, len(sessions)) == (0, 0)


def test_a_session_keeps_nothing_of_topics_it_has_no_partitions_of(session_id, sessions):
    use(sessions, session_id, 1, 0, [(PAYMENTS, (1, 2)), (UUID(int=9), ())])
    context = sessions.open(request(session_id, 2, (), [(PAYMENTS, (2, 1)), (UUID(int=8), (1,))]), True, 0)
    assert list(context.partitions._by_topic) == [ORDERS]


def test_a_partition_forgotten_while_a_fetch_waits_is_not_answered(session_id, sessions):
    waiting = sessions.open(request(session_id, 1), True, 0)
    found = [(partition, data(records=b"new")) for partition in waiting.partitions]
    sessions.open(request(session_id, 2, (), [(ORDERS, (0, 1, 2))]), True, 0)
    assert list(waiting.select(found)) == []


# --- What a response leaves out


def test_a_partition_with_nothing_new_is_left_out(session_id, sessions):
    assert answer(sessions.open(request(session_id, 1), True, 0)) == []


@pytest.mark.parametrize(
    "news",
    [
        data(records=b"batch"),
        data(high_watermark=11),
        data(log_start_offset=1),
        data(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, high_watermark=10),
        data(diverging=0),
    ],
    ids=["records", "high watermark", "log start offset", "error", "diverging epoch"],
)
def test_a_partition_with_news_is_sent_and_the_others_are_not(session_id, sessions, news):
    assert answer(sessions.open(request(session_id, 1), True, 0), p1=news) == [1]


def test_what_was_sent_is_not_sent_again(session_id, sessions):
    news = data(high_watermark=11, log_start_offset=5)
    answer(sessions.open(request(session_id, 1), True, 0), p1=news)
    assert answer(sessions.open(request(session_id, 2), True, 0), p1=news) == []


def test_an_error_is_repeated_while_it_lasts_and_its_end_is_told(session_id, sessions):
    error = data(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    assert answer(sessions.open(request(session_id, 1), True, 0), p1=error) == [1]
    assert answer(sessions.open(request(session_id, 2), True, 0), p1=error) == [1]
    assert answer(sessions.open(request(session_id, 3), True, 0)) == [1]
    assert answer(sessions.open(request(session_id, 4), True, 0)) == []


def test_the_end_of_an_error_in_the_full_fetch_is_told(sessions):
    context = sessions.open(request(topics=[(ORDERS, (0, 1))]), True, 0)
    answer(context, p1=data(error_code=ErrorCode.UNKNOWN_TOPIC_ID))
    assert answer(sessions.open(request(context.session_id, 1), True, 0)) == [1]


def test_the_high_watermark_is_told_again_after_a_diverging_epoch(session_id, sessions):
    assert answer(sessions.open(request(session_id, 1), True, 0), p1=data(high_watermark=11, diverging=0)) == [1]
    assert answer(sessions.open(request(session_id, 2), True, 0), p1=data(high_watermark=11)) == [1]
    assert answer(sessions.open(request(session_id, 3), True, 0), p1=data(high_watermark=11)) == []


def test_the_high_watermark_is_told_again_in_another_epoch(session_id, sessions):
    later = [(ORDERS, (asked(1, current_leader_epoch=5),))]
    assert answer(sessions.open(request(session_id, 1, topics=later), True, 0)) == [1]
    same = [(ORDERS, (asked(1, fetch_offset=3, current_leader_epoch=5),))]
    assert answer(sessions.open(request(session_id, 2, topics=same), True, 0)) == []


def test_partitions_with_records_are_read_last_next_time(sessions):
    session_id = begin(sessions, [(ORDERS, (0, 1, 2, 3))])
    first = sessions.open(request(session_id, 1), True, 0)
    assert answer(first, p0=data(records=b"r"), p1=data(high_watermark=99), p2=data(records=b"r")) == [0, 1, 2]
    second = sessions.open(request(session_id, 2), True, 0)
    assert [partition.partition for partition in second.partitions] == [1, 3, 0, 2]


class ConsumerMachine(RuleBasedStateMachine):
    """A consumer that merges incremental responses knows at any time what a full response would tell it."""

    def __init__(self):
        super().__init__()
        self.sessions = FetchSessions(2, Random(1))
        self.state = {number: data() for number in range(4)}
        self.known = {}
        self.wanted = set()

    @initialize(wanted=st.sets(st.integers(0, 3), min_size=1))
    def begin(self, wanted):
        context = self.sessions.open(request(topics=[(ORDERS, sorted(wanted))]), True, 0)
        self.wanted = wanted
        self.merge(context)
        self.session_id, self.epoch = context.session_id, 1

    def merge(self, context):
        results = [(partition, self.state[partition.partition]) for partition in context.partitions]
        for partition, result in context.select(results):
            self.known[partition.partition] = result
        assert context.error_code == 0

    @rule(
        number=st.integers(0, 3),
        high_watermark=st.integers(8, 10),
        log_start_offset=st.integers(0, 1),
        error_code=st.sampled_from([0, 0, 6]),
    )
    def change(self, number, high_watermark, log_start_offset, error_code):
        if error_code:
            high_watermark = log_start_offset = -1
        self.state[number] = data(high_watermark, log_start_offset, b"", error_code)

    @rule(added=st.sets(st.integers(0, 3)), forgotten=st.sets(st.integers(0, 3)))
    def fetch(self, added, forgotten):
        left = (self.wanted | added) - forgotten
        if not left:
            return
        for number in forgotten:
            self.known.pop(number, None)
        self.wanted = left
        topics, forgotten_topics = [(ORDERS, sorted(added))], [(ORDERS, sorted(forgotten))]
        self.merge(self.sessions.open(request(self.session_id, self.epoch, topics, forgotten_topics), True, 0))
        self.epoch += 1
        assert self.known == {number: self.state[number] for number in self.wanted}

    @invariant()
    def the_cache_counts_what_is_wanted(self):
        assert self.sessions.partitions_cached == len(self.wanted)


ConsumerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
test_a_consumer_that_merges_incremental_responses_knows_everything = ConsumerMachine.TestCase


# --- Eviction


def use(sessions, session_id, epoch, now_ms, topics=()):
    assert sessions.open(request(session_id, epoch, topics), True, now_ms).error_code == ErrorCode.NONE


def begin_sized(sessions, size, now_ms):
    return begin(sessions, [(ORDERS, range(size))], now_ms)


def test_without_room_a_full_fetch_is_answered_without_a_session(sessions):
    for _ in range(3):
        assert begin_sized(sessions, 1, now_ms=0)
    context = sessions.open(request(topics=[(ORDERS, (0, 1))]), True, EVICTION_MS)
    assert answer(context) == [0, 1]
    assert (context.session_id, context.error_code) == (0, 0)
    assert (len(sessions), sessions.evictions) == (3, 0)


def test_with_no_slots_there_are_no_sessions():
    assert begin(FetchSessions(0, Random(1))) == 0


def test_the_session_idle_longest_gives_way_once_it_has_been_idle_for_two_minutes(sessions):
    first, second, third = (begin_sized(sessions, 9, now_ms) for now_ms in (0, 1, 2))
    use(sessions, first, 1, 3)
    assert begin_sized(sessions, 1, EVICTION_MS + 1) == 0
    assert begin_sized(sessions, 1, EVICTION_MS + 2) != 0
    assert second not in sessions._sessions
    assert {first, third} < set(sessions._sessions)
    assert (len(sessions), sessions.evictions, sessions.partitions_cached) == (3, 1, 19)


def test_a_busy_session_gives_way_to_a_larger_one_only_once_it_is_two_minutes_old(sessions):
    ids = [begin_sized(sessions, size, 0) for size in (3, 2, 4)]
    for session_id in ids:
        use(sessions, session_id, 1, EVICTION_MS)
    assert begin_sized(sessions, 9, EVICTION_MS) == 0
    for session_id in ids:
        use(sessions, session_id, 2, EVICTION_MS + 1)
    assert begin_sized(sessions, 2, EVICTION_MS + 1) == 0
    assert begin_sized(sessions, 3, EVICTION_MS + 1) != 0
    assert ids[1] not in sessions._sessions
    assert sessions.evictions == 1


def test_a_session_that_grows_is_evicted_by_its_new_size(sessions):
    ids = [begin_sized(sessions, size, 0) for size in (1, 2, 3)]
    for session_id in ids:
        use(sessions, session_id, 1, EVICTION_MS + 1)
    use(sessions, ids[0], 2, EVICTION_MS + 2, [(ORDERS, range(8))])
    assert begin_sized(sessions, 2, EVICTION_MS + 2) == 0
    assert begin_sized(sessions, 3, EVICTION_MS + 2) != 0
    assert ids[1] not in sessions._sessions


def test_closing_every_session_leaves_nothing_behind(sessions):
    ids = [begin_sized(sessions, 2, 0) for _ in range(3)]
    for session_id in ids:
        use(sessions, session_id, 1, EVICTION_MS + 1)
        sessions.open(request(session_id, -1), True, EVICTION_MS + 1)
    assert (len(sessions), sessions.partitions_cached, sessions._evictable) == (0, 0, {})


# --- A client that is throttled finds its session as it was


def test_what_would_be_told_is_what_is_selected(sessions):
    context = sessions.open(request(begin(sessions), 1), True, 0)
    found = results(context, p1=data(records=b"x"), p2=data(high_watermark=11))
    assert numbers(context.told(found)) == [1, 2]
    assert numbers(context.told(found)) == [1, 2]
    assert numbers(context.select(found)) == [1, 2]
    assert numbers(context.told(found)) == [1]


def test_a_throttled_fetch_is_answered_in_its_session_and_told_the_same_next_time(session_id, sessions):
    context = sessions.open(request(session_id, 1), True, 0)
    context.told(results(context, p1=data(high_watermark=11)))
    context.throttle()
    assert (context.session_id, context.error_code) == (session_id, ErrorCode.NONE)
    context = sessions.open(request(session_id, 2), True, 0)
    assert answer(context, p1=data(high_watermark=11)) == [1]


def test_a_throttled_full_fetch_begins_no_session(sessions):
    context = sessions.open(request(topics=[(ORDERS, (0, 1))]), True, 0)
    assert len(context.told(results(context))) == 2
    context.throttle()
    assert context.session_id == 0
    assert len(sessions) == 0


def test_a_throttled_fetch_that_another_has_overtaken_is_told_an_epoch_error(session_id, sessions):
    context = sessions.open(request(session_id, 1), True, 0)
    sessions.open(request(session_id, 2), True, 0)
    context.throttle()
    assert context.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_what_may_not_be_read_is_told_with_the_rest(session_id, sessions):
    readable = ReadableSessions(
        sessions,
        lambda _, partitions: [partition for partition in partitions if partition.partition == 0],
        lambda _: data(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    )
    context = readable.open(request(session_id, 1), True, 0)
    told = context.told(results(context, p1=data(high_watermark=11)))
    assert numbers(told) == [1, 0]
    context.throttle()
    assert (context.session_id, context.error_code) == (session_id, ErrorCode.NONE)
