"""The picture of a topology: records flow from left to right, and nothing lies upon anything else."""

from odradek.page.views.topology import WIDTH, topology_picture
from odradek.protocol.message_types.streams_group_describe import Subtopology, TopicInfo, Topology


def topology(*subtopologies):
    """(id, sources, sinks, stores) of each; a source that another writes is a repartition topic."""
    written = {topic for each in subtopologies for topic in each[2]}
    return Topology(
        subtopologies=[
            Subtopology(
                subtopology_id=name,
                source_topics=[topic for topic in sources if topic not in written],
                repartition_source_topics=[TopicInfo(name=topic) for topic in sources if topic in written],
                repartition_sink_topics=sinks,
                state_changelog_topics=[TopicInfo(name=topic) for topic in stores],
            )
            for name, sources, sinks, stores in subtopologies
        ]
    )


def test_every_subtopology_is_right_of_its_inputs_and_left_of_its_outputs():
    picture = topology_picture(topology(("0", "ab", "xy", ""), ("1", "xc", "z", "s"), ("2", "zy", "", "")))
    places = {box.name: box.x for box in picture.boxes}
    assert places["a"] == places["c"] < places["0"] < places["x"] < places["1"] < places["z"] < places["2"]
    assert len(picture.lines) == 2 + 2 + 2 + 1 + 2
    assert all(x1 < x2 for x1, _, x2, _ in picture.lines)
    for box in picture.boxes:
        assert box.x + WIDTH < picture.width
        assert box.y + box.height < picture.height
        for other in picture.boxes:
            assert box is other or box.x != other.x or box.y + box.height < other.y or other.y + other.height < box.y
    assert picture.text.startswith(
        "subtopology 0 reads a, b, writes x, y; subtopology 1 reads c, x, writes z, keeps state in s; "
    )


def test_odd_topologies_are_drawn():
    assert topology_picture(Topology()).boxes == ()
    # A circle, a subtopology that reads nothing, and more stores than a box names.
    picture = topology_picture(topology(("0", "x", "y", ""), ("1", "y", "x", "abcdefgh"), ("2", "", "", "")))
    assert {box.name for box in picture.boxes} == {"0", "1", "2", "x", "y"}
    [stores] = [box.lines for box in picture.boxes if box.name == "1"]
    assert stores == ("Subtopology 1", "a", "b", "c", "d", "e", "and 3 more")
