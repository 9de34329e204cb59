"""Internal topics of a topology: numbers of partitions, copartitioning, missing topics, and topologies that fit no topics."""

import pytest

from odradek.coordinator.group.streams.configured_topology import ConfiguredInternalTopic, Status
from odradek.coordinator.group.streams.internal_topics import configure_topics
from odradek.coordinator.group.streams.topology import StreamsTopology
from odradek.protocol.coordinator_records.streams_groups import (
    CopartitionGroup,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicConfig,
    TopicInfo,
)
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.cases import each_case


def subtopology(name, *, sources=(), sinks=(), repartition=(), changelogs=(), together=()):
    """``repartition`` are pairs of a topic and its partitions, 0 for any; ``together`` are places of sources and of those."""
    return Subtopology(
        name,
        sources,
        (),
        tuple(TopicInfo(topic, 0, 0, ()) for topic in changelogs),
        sinks,
        tuple(TopicInfo(topic, partitions, 0, ()) for topic, partitions in repartition),
        tuple(CopartitionGroup(of_sources, (), of_repartition) for of_sources, of_repartition in together),
    )


def configure(*subtopologies, **counts):
    return configure_topics(StreamsTopology(StreamsGroupTopologyValue(3, subtopologies)), 7, counts.get)


def missing(configured):
    return {topic.name: topic.partition_count for topic in configured.missing}


def test_a_chain_of_repartition_topics_has_the_largest_number_of_what_is_written_to_it():
    configured = configure(
        subtopology("0", sources=("a", "b"), sinks=("r",)),
        subtopology("1", repartition=(("r", 0),), sinks=("q",), changelogs=("c",)),
        subtopology("2", repartition=(("q", 0), ("fixed", 6)), sources=("a",), changelogs=("d",)),
        a=2,
        b=5,
        q=5,
    )
    assert missing(configured) == {"r": 5, "c": 5, "d": 6, "fixed": 6}
    assert {each: configured.max_num_input_partitions(each) for each in configured.subtopologies()} == {"0": 5, "1": 5, "2": 6}
    assert [configured.is_stateful(each) for each in configured.subtopologies()] == [False, True, True]
    assert configured.problem == (
        Status.MISSING_INTERNAL_TOPICS,
        "Internal topics are missing: c, d, fixed and 1 additional topics",
    )
    assert (configured.epoch, configured.metadata_hash, configured.is_ready) == (3, 7, False)


@each_case(
    ("sources", "repartition", "together", "counts", "decided"),
    [
        # A repartition topic follows the source topics of its group.
        (("a",), (("r", 0),), ((0,), (0,)), {"a": 4, "x": 2}, {"r": 4}),
        # Without source topics, the number that one asks for wins; else the largest.
        ((), (("r", 0), ("s", 3)), ((), (0, 1)), {"x": 2}, {"r": 3, "s": 3}),
        ((), (("r", 0), ("s", 0)), ((), (0, 1)), {"x": 2, "y": 8}, {"r": 8, "s": 8}),
    ],
)
def test_topics_of_a_copartition_group_have_the_same_number(sources, repartition, together, counts, decided):
    configured = configure(
        subtopology("0", sources=("x",), sinks=("r",)),
        subtopology("1", sources=("y",) if "y" in counts else ("x",), sinks=("s",) if len(repartition) > 1 else ()),
        subtopology("2", sources=sources, repartition=repartition, together=(together,)),
        **counts,
    )
    assert missing(configured) == decided


@each_case(
    ("subtopologies", "counts", "status", "detail"),
    [
        (
            (subtopology("0", sources=("a", "b", "c", "d")),),
            {},
            Status.MISSING_SOURCE_TOPICS,
            "Source topics a, b, c and 1 additional topics are missing.",
        ),
        (
            (subtopology("0", sources=("a", "b"), together=(((0, 1), ()),)),),
            {"a": 1, "b": 2},
            Status.INCORRECTLY_PARTITIONED_TOPICS,
            "Following topics do not have the same number of partitions: [{a=1, b=2}]",
        ),
        (
            (subtopology("0", sources=("a",), repartition=(("r", 3),), sinks=("r",), together=(((0,), (0,)),)),),
            {"a": 2},
            Status.INCORRECTLY_PARTITIONED_TOPICS,
            "Number of partitions [3] of repartition topic [r] doesn't match number of partitions [2] of the source topic.",
        ),
        (
            (subtopology("0", sources=("a",), changelogs=("c",)),),
            {"a": 2, "c": 1},
            Status.INCORRECTLY_PARTITIONED_TOPICS,
            "Existing topic c has different number of partitions: expected 2, found 1",
        ),
    ],
)
def test_topics_that_do_not_fit_are_told(subtopologies, counts, status, detail):
    configured = configure(*subtopologies, **counts)
    assert (configured.problem, configured.configured, configured.missing) == ((status, detail), None, ())


@each_case(
    "subtopologies",
    [
        (subtopology("0", repartition=(("r", 0),)),),
        (subtopology("0", repartition=(("r", 0),), sinks=("r",)),),
        (subtopology("0", changelogs=("c",)),),
        (subtopology("0", sources=("a",), together=(((1,), ()),)),),
        (subtopology("0", sources=("a",), together=(((-1,), ()),)),),
    ],
)
def test_a_topology_that_fits_no_topics_is_refused(subtopologies):
    with pytest.raises(KafkaError) as refused:
        configure(*subtopologies, a=1)
    assert refused.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_a_long_chain_that_is_named_backwards_is_refused():
    chain = [subtopology(str(each), repartition=((f"r{each}", 0),), sinks=(f"r{each + 1}",)) for each in reversed(range(1, 200))]
    first = subtopology("0", sources=("a",), sinks=("r1",))
    last = subtopology("200", repartition=(("r200", 0),))
    assert len(configure(first, *reversed(chain), last, a=1).missing) == 200
    with pytest.raises(KafkaError):
        configure(*chain, first, last, a=1)


def test_an_internal_topic_keeps_its_own_replicas_and_configs():
    changelog = TopicInfo("c", 0, 3, (TopicConfig("cleanup.policy", "compact"),))
    configured = configure(subtopology("0", sources=("a",))._replace(state_changelog_topics=(changelog,)), a=2)
    assert configured.missing == [ConfiguredInternalTopic("c", 2, 3, (("cleanup.policy", "compact"),))]
