"""A request is cut into pieces, and their responses put together, as if there had been one."""

from random import Random
from typing import NamedTuple

import pytest

from odradek.broker.api import NEVER_SLICED, SERVED, pieces_of
from odradek.broker.large import Joined, Pieces, Repeated, cut
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import load, messages
from tests.cases import each_case


class Partition(NamedTuple):
    index: int


class Topic(NamedTuple):
    name: str
    partitions: tuple[Partition, ...]


class Message(NamedTuple):
    """A request, and the response that a handler makes of it."""

    group: str
    topics: tuple[Topic, ...] | None


PIECES = Pieces(("topics", "partitions"), ("topics", "partitions"), 10)


def message(*sizes):
    return Message("g", tuple(Topic(f"t{place}", tuple(map(Partition, range(size)))) for place, size in enumerate(sizes)))


def plain(message):
    return [(topic.name, [partition.index for partition in topic.partitions]) for topic in message.topics or ()]


def joined(request, pieces):
    whole = Joined(request, pieces)
    for piece in cut(request, pieces):
        whole.add(piece)
    return whole.response()


@each_case("seed", range(20))
def test_what_was_cut_is_put_together_as_it_was(seed):
    random = Random(seed)
    request = message(*(random.choice((0, 1, 3, 9, 10, 11, 35)) for _ in range(random.randrange(12))))
    assert plain(joined(request, PIECES)) == plain(request)
    for piece in cut(request, PIECES):
        assert piece.group == "g"
        assert sum(max(len(topic.partitions), 1) for topic in piece.topics) <= PIECES.most_items


@pytest.mark.parametrize("topics", [None, ()])
def test_a_request_without_items_is_one_piece(topics):
    request = Message("g", topics)
    assert list(cut(request, PIECES)) == [request]


def test_three_levels_are_put_together():
    m = messages(ApiKey.OFFSET_FETCH)
    pieces = Pieces(("groups", "topics", "partition_indexes"), ("groups", "topics", "partition_indexes"), 4)
    topics = [m.OffsetFetchRequestTopics(name=name, partition_indexes=tuple(range(7))) for name in "ab"]
    request = m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(group_id=group, topics=topics) for group in "gh"])
    found = joined(request, pieces)
    assert [(g.group_id, [(t.name, list(t.partition_indexes)) for t in g.topics]) for g in found.groups] == [
        (group, [("a", list(range(7))), ("b", list(range(7)))]) for group in "gh"
    ]
    assert len(list(cut(request, pieces))) > len("gh")


def test_an_item_that_is_named_twice_is_asked_once():
    pieces = Pieces(("topics",), ("topics",), 2, Repeated.ONCE)
    request = Message("g", tuple(Topic(name, ()) for name in "abcabcd"))
    assert [[topic.name for topic in piece.topics] for piece in cut(request, pieces)] == [["a", "b"], ["c", "d"]]
    assert [topic.name for topic in joined(request, pieces).topics] == list("abcd")


def test_an_item_that_is_asked_once_is_answered_as_often_as_it_is_named():
    pieces = Pieces(("topics",), ("topics",), 2, Repeated.ALIKE)
    request = Message("g", tuple(Topic(name, ()) for name in "abcabcd"))
    assert [[topic.name for topic in piece.topics] for piece in cut(request, pieces)] == [["a", "b"], ["c", "d"]]
    assert [topic.name for topic in joined(request, pieces).topics] == list("abcabcd")


IN_PIECES = {api_key: pieces for api_key in SERVED if (pieces := pieces_of(api_key)) is not None}


@each_case("api_key", IN_PIECES)
def test_an_api_names_arrays_that_are_there(api_key):
    pieces = IN_PIECES[api_key]
    for kind, path in (("request", pieces.asked), ("response", pieces.answered)):
        layout = load(api_key, SERVED[api_key].max_version, kind)
        for field in path:
            spec = next(spec for spec in layout.fields if spec.name == field)
            assert spec.is_array
            layout = spec.layout


def test_what_is_never_sliced_has_no_pieces():
    assert IN_PIECES
    assert not IN_PIECES.keys() & NEVER_SLICED
