"""``odradek groups explain`` on the records of streams groups."""

import pytest

from odradek.cli.explain_streams_group import StreamsGroupStory
from odradek.protocol.coordinator_records import decode_group_key, decode_value
from odradek.protocol.coordinator_records.streams_groups import StreamsGroupKey
from odradek.protocol.records import read_records
from odradek.timing.reply import Reply
from tests.coordinator.group.streams_bed import StreamsBed


class ToldBed(StreamsBed):
    """Tells the records of its log as the command does."""

    def story(self, first=0):
        story = StreamsGroupStory()
        for batch in self.log.batches[first:]:
            for row in read_records(batch):
                key = decode_group_key(row.key)
                if isinstance(key, StreamsGroupKey):
                    story.take(key, decode_value(key, row.value), row.timestamp)
        return story

    def told(self, first=0):
        """(changes, moves) of the last explanation."""
        last = self.story(first).explanations[-1]
        return last.changes, None if last.moves is None else [self._text(each) for each in last.moves]

    def _text(self, each):
        kept = "" if each.kept_ms is None else f", kept {each.kept_ms} ms"
        return f"{each.role} {each.what} {each.source}>{each.target}: {each.reason}{kept}"


@pytest.fixture
def bed():
    """The word count of ``a``, on a topic of two partitions, with its internal topics."""
    bed = ToldBed()
    bed.topic("t", 2)
    bed.granted("a", 0)
    bed.make_internal_topics()
    bed.again("a")
    return bed


def test_tasks_move_to_a_new_member_once_the_old_one_has_given_them_up(bed):
    changes, moves = bed.told()
    assert moves == [f"active {task} None>a: nobody had it" for task in ("0_0", "0_1", "1_0", "1_1")]
    bed.granted("b", 0)
    changes, moves = bed.told()
    assert changes == ["b of process p-b joined"]
    assert len(moves) == 2
    assert all("a>b: its member had more than its share" in move for move in moves)
    kept = bed.streams_group().targets.get("a").active
    bed.again("a")
    bed.again("a", owned={"active": {each: sorted(partitions) for each, partitions in kept.items()}})
    assert all(move.endswith(" ms") for move in bed.told()[1])
    bed.beat_streams("b", -1)
    bed.again("a")
    changes, moves = bed.told()
    assert changes == ["b is gone"]
    assert all("b>a: its member is gone" in move for move in moves)


def test_standbys_and_changed_configs_are_told(bed):
    bed.granted("b", 0)
    bed.streams_config = bed.streams_config._replace(num_standby_replicas=1)
    bed.again("a")
    bed.again("a")
    changes, moves = bed.told()
    assert any("num.standby.replicas=1" in change for change in changes)
    assert [move for move in moves if move.startswith("standby")] != []


def test_what_the_log_does_not_have_is_not_told(bed):
    bed.granted("b", 0)
    assert bed.told(first=len(bed.log.batches) - 1)[1] is None
    assert bed.story().is_there
    for member_id in "ab":
        bed.beat_streams(member_id, -1)
    bed.write(lambda shard: shard.delete_group("g"), Reply())
    assert not bed.story().is_there
