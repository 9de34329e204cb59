"""Inspections are done one after the other, and clients take turns."""

from collections import deque
from concurrent.futures import Future

from odradek.broker.replica.inspections import Inspections
from odradek.protocol.errors import ErrorCode, KafkaError


class Work:
    """Long work that ends when the test says so. Cancelled, it raises at its next checkpoint, as in a thread."""

    def __init__(self, work, then):
        self.work, self.then, self.is_cancelled = work, then, False

    def cancel(self):
        self.is_cancelled = True

    def checkpoint(self):
        pass

    def end(self):
        future = Future()
        future.set_result(self.work(self))
        self.then(future)


class Held:
    """The part of Background that inspections need."""

    def __init__(self):
        self.works = deque()

    def run_long(self, work, then, *, name):
        self.works.append(Work(work, then))
        return self.works[-1]

    def end_one(self):
        assert len(self.works) == 1
        self.works.popleft().end()


def test_a_client_waits_for_one_inspection_of_each_other_client_however_many_they_have():
    background = Held()
    inspections = Inspections(background)
    done = []
    for client in "ab":
        for number in range(50):
            inspections.run(lambda _pause, of=(client, number): of, done.append, client)
    inspections.run(lambda _pause: ("c", 0), done.append, "c")
    while background.works:
        background.end_one()
    # One of a had begun when the others came.
    assert done.index(("c", 0)) <= 3
    for client in "ab":
        assert [each for each in done if each[0] == client] == [(client, number) for number in range(50)]


def test_when_the_broker_stops_what_is_under_way_and_what_waits_is_told_so():
    background = Held()
    inspections = Inspections(background)
    done = []
    for client in "aab":
        inspections.run(lambda pause: pause(), done.append, client)
    inspections.close()
    background.end_one()
    assert [outcome.code for outcome in done if isinstance(outcome, KafkaError)] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3
