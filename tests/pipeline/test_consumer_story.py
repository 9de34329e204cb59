"""What a consumer group's records tell, without Spark; cut into passes wherever one may end."""

import pytest

from odradek.pipeline.tables.consumer_story import CONVERTED, GroupStory
from odradek.pipeline.tables.stories import Record
from tests.pipeline.consumer_records import (
    NAMES,
    ConsumerRecord,
    assigned,
    consumer,
    epoch,
    has,
    regex,
    removed,
    sharing,
    states_of,
    target,
    topics_of_old,
)

# (seconds, records of one batch) of a group's life.
Log = list[tuple[float, list[ConsumerRecord]]]

CLASSIC_IS_DELETED = ("group_metadata", True, {})

TWO_JOIN: Log = [
    (1, [consumer("a", client="one"), epoch(1), target("a", 0, 1), assigned(1), has("a", 1, 0, 1)]),
    (5, [consumer("b", client="two"), epoch(2), target("a", 0), target("b", 1), assigned(2), has("b", 2, state=2)]),
    (6, [has("a", 1, 0, pending=(1,))]),
    (9, [has("a", 2, 0)]),
    (10, [has("b", 2, 1)]),
]
ONE_IS_GONE: Log = [(20, [*removed("b"), epoch(3)]), (21, [target("a", 0, 1), assigned(3)]), (22, [has("a", 3, 0, 1)])]
ALL_ARE_GONE: Log = [(30, [*removed("a"), epoch(4)])]
STATIC: Log = [
    (1, [consumer("s-1", instance="s"), epoch(1), target("s-1", 0), assigned(1), has("s-1", 1, 0)]),
    (2, [consumer("t-1", instance="t"), epoch(2), target("t-1", 1), assigned(2), has("t-1", 2, 1), has("s-1", 2, 0)]),
    (10, [has("s-1", -2, 0)]),
]


class Told:
    """The rows that a log makes, by table; a state goes through its text after each record if ``is_cut``."""

    def __init__(self, *logs: Log, names: dict[str, str] = NAMES, is_cut: bool = False) -> None:
        self.rows: dict[str, list[dict]] = {"group_generations": [], "member_changes": [], "partition_moves": []}
        self.story = GroupStory("g", names)
        offset = 0
        for seconds, records in (batch for log in logs for batch in log):
            for kind, is_tombstone, fields in records:
                for row in self.story.take(Record(kind, is_tombstone, fields, round(seconds * 1e6), 0, offset)):
                    self.rows[row.table].append(row.columns)
                offset += 1
                state = self.story.state()
                if is_cut:
                    self.story = GroupStory("g", names) if state is None else GroupStory.resumed("g", names, state)

    def column(self, table: str, *columns: str) -> list[tuple]:
        return [tuple(row.get(column) for column in columns) for row in self.rows[table]]

    @property
    def state(self) -> str:
        return self.story.now().columns["state"]


def test_a_generation_is_an_epoch_of_the_assignment_or_of_nobody():
    told = Told(TWO_JOIN, ONE_IS_GONE, ALL_ARE_GONE)
    assert told.column("group_generations", "generation", "reason", "state", "member_count", "since_last_ms", "sync_ms") == [
        (1, "first", "Reconciling", 1, None, 0),
        (2, "members", "Reconciling", 2, 4000, 0),
        (3, "members", "Reconciling", 1, 16_000, 1000),
        (4, "empty", "Empty", 0, 9000, None),
    ]
    second = told.rows["group_generations"][1]
    assert (second["members"], second["group_type"], second["protocol_type"]) == (["a", "b"], "Consumer", "consumer")
    assert second["assignment"] == [
        {"member_id": "a", "topic": "orders", "partitions": [0]},
        {"member_id": "b", "topic": "orders", "partitions": [1]},
    ]


def test_a_generation_says_what_it_came_of():
    new_topic = [(40, [epoch(5, metadata_hash=2)]), (40, [target("a", 0), assigned(5)])]
    moved_on = [(50, [consumer("a", client="one", topics=("bills", "orders")), epoch(6, metadata_hash=2), assigned(6)])]
    found = [(60, [regex("^o", "orders"), consumer("a", client="one", topics=(), regex="^o"), epoch(7), assigned(7)])]
    told = Told(TWO_JOIN, ONE_IS_GONE, new_topic, moved_on, found)
    assert told.column("group_generations", "generation", "reason", "why") == [
        (1, "first", "one (a) joined"),
        (2, "members", "two (b) joined"),
        (3, "members", "two (b) is gone"),
        (5, "assignment", "its topics or their partitions have changed"),
        (6, "assignment", "one (a) subscribes to bills, orders, previously to orders"),
        (7, "assignment", "the regular expression ^o matches orders; one (a) subscribes to ^o, previously to bills, orders"),
    ]


def test_of_many_causes_the_first_are_told_and_how_many_more():
    many = [(1, [*(consumer(f"m-{number:02}") for number in range(23)), epoch(1), assigned(1)])]
    [(why,)] = Told(many).column("group_generations", "why")
    assert why.startswith("app (m-00) joined; ")
    assert why.endswith("app (m-19) joined; and 3 more")


def test_a_member_comes_or_is_gone_with_the_epoch_that_it_raised():
    assert Told(TWO_JOIN, ONE_IS_GONE, ALL_ARE_GONE).column(
        "member_changes", "generation", "at", "member_id", "client_id", "change", "for_left", "for_expired"
    ) == [
        (1, 1_000_000, "a", "one", "joined", None, None),
        (2, 5_000_000, "b", "two", "joined", None, None),
        (3, 20_000_000, "b", "two", "gone", None, None),
        (4, 30_000_000, "a", "one", "gone", None, None),
    ]


def test_of_a_member_that_is_gone_its_partitions_and_when_it_was_last_heard_of_are_told_for_its_commits():
    gone = [row for row in Told(TWO_JOIN, ONE_IS_GONE).rows["member_changes"] if row["change"] == "gone"]
    assert [(row["assignment"], row["_since"]) for row in gone] == [([{"topic": "orders", "partitions": [1]}], 10_000_000)]


@pytest.mark.parametrize(("seconds", "is_late"), [(35.9, False), (36.0, True)])
def test_a_member_that_kept_what_it_was_to_give_up_for_its_rebalance_timeout_may_have_expired(seconds, is_late):
    told = Told(TWO_JOIN[:3], [(seconds, [*removed("a"), epoch(3)])])
    [(change, why)] = told.column("member_changes", "change", "for_expired")[2:]
    expected = "it was asked to give partitions up 30000 ms before, and its rebalance timeout is 30000 ms" if is_late else None
    assert (change, why) == ("gone", expected)


def test_a_static_member_that_leaves_for_now_is_away_and_the_log_knows_that():
    told = Told(STATIC)
    assert told.column("member_changes", "generation", "member_id", "change", "for_left")[2:] == [
        (2, "s-1", "away_static", "a static member left temporarily, with epoch -2, and keeps its partitions")
    ]
    assert told.state == "Reconciling"


def test_a_static_member_that_is_back_is_the_same_member_and_keeps_its_partitions():
    back = [*removed("s-1"), consumer("s-2", instance="s"), target("s-2", 0), has("s-2", 2, 0)]
    told = Told(STATIC, [(12, back)])
    assert told.column("member_changes", "generation", "member_id", "change")[3:] == [(2, "s-2", "bounced_static")]
    assert len(told.rows["partition_moves"]) == 2
    assert told.state == "Stable"
    same_id = Told(STATIC, [(12, [has("s-1", 2, 0)])])
    assert same_id.column("member_changes", "generation", "member_id", "change")[3:] == [(2, "s-1", "bounced_static")]


def test_a_static_member_that_left_for_now_and_does_not_come_back_has_expired():
    told = Told(STATIC, [(55, [*removed("s-1"), epoch(3), target("t-1", 0, 1), assigned(3)])])
    assert told.column("member_changes", "generation", "change", "for_left", "for_expired")[3:] == [
        (3, "expired", None, "it left for now (epoch -2) 45000 ms before, and did not come back")
    ]
    [*_, (why,)] = told.column("group_generations", "why")
    assert why.endswith("app (s) is gone: it left for now (epoch -2) 45000 ms before, and did not come back")


def test_of_a_static_member_that_never_said_that_it_leaves_is_not_known_why_it_is_gone():
    told = Told(STATIC, [(55, [*removed("t-1"), epoch(3)])])
    speaks = "it is a static member, and had not left temporarily"
    assert told.column("member_changes", "change", "for_left", "for_expired")[3:] == [("gone", None, speaks)]


def test_a_partition_has_moved_when_the_new_owner_has_it_and_how_long_the_old_one_kept_it_is_told():
    columns = ("generation", "at", "topic", "partition", "from_member", "to_member", "kept_ms", "rebalance_kind")
    assert Told(TWO_JOIN, ONE_IS_GONE, ALL_ARE_GONE).column("partition_moves", *columns) == [
        (1, 1_000_000, "orders", 0, None, "a", None, "cooperative"),
        (1, 1_000_000, "orders", 1, None, "a", None, "cooperative"),
        (2, 10_000_000, "orders", 1, "a", "b", 4000, "cooperative"),
        # Who is gone was not waited for.
        (3, 22_000_000, "orders", 1, "b", "a", None, "cooperative"),
        (4, 30_000_000, "orders", 0, "a", None, None, "cooperative"),
        (4, 30_000_000, "orders", 1, "a", None, None, "cooperative"),
    ]


def test_a_partition_that_its_owner_gets_back_before_it_gave_it_up_has_not_moved():
    back = [(7, [*removed("b"), epoch(3), target("a", 0, 1), assigned(3), has("a", 3, 0, 1)])]
    again = [
        (8, [consumer("c"), epoch(4), target("a", 0), target("c", 1), assigned(4), has("a", 3, 0, pending=(1,))]),
        (11, [has("a", 4, 0), has("c", 4, 1)]),
    ]
    moves = Told(TWO_JOIN[:3], back, again).column("partition_moves", "from_member", "to_member", "kept_ms")
    assert moves[2:] == [("a", "c", 3000)]


def test_a_share_group_has_generations_and_members_and_partitions_that_several_have():
    together = [has("a", 2, 0, 1), consumer("b"), epoch(2), target("a", 0, 1), target("b", 0), assigned(2), has("b", 2, 0)]
    log = [
        (
            1,
            [*sharing(consumer("a", client="one"), epoch(1)), states_of(bills="BILLS"), *sharing(target("a", 0, 1), assigned(1))],
        ),
        (2, sharing(has("a", 1, 0, 1), *together)),
        (3, sharing(consumer("a", client="one", topics=("bills", "orders")), has("a", 3, 0, topic_id="BILLS"))),
    ]
    for is_cut in (False, True):
        told = Told(log, [(9, sharing(*removed("b"), epoch(3)))], is_cut=is_cut)
        names = ("generation", "reason", "state", "member_count", "group_type", "protocol_type")
        assert told.column("group_generations", *names) == [
            (1, "first", "Stable", 1, "Share", "share"),
            (2, "members", "Stable", 2, "Share", "share"),
        ]
        assert told.column("member_changes", "generation", "member_id", "change") == [
            (1, "a", "joined"),
            (2, "b", "joined"),
            (3, "b", "gone"),
        ]
        assert told.rows["partition_moves"] == []
        now = told.story.now().columns
        assert (now["group_type"], now["state"]) == ("Share", "Stable")
        [member] = now["members"]
        assert member["assignment"] == [{"topic": "bills", "partitions": [0]}]
        assert member["rebalance_timeout"] is None
    assert Told(log, [(9, sharing(*removed("a"), *removed("b"), epoch(3)))]).state == "Empty"


def test_of_a_group_made_anew_nothing_of_the_former_is_known():
    told = Told(TWO_JOIN, ONE_IS_GONE, ALL_ARE_GONE, [(40, [epoch(None)])])
    assert told.story.state() is None
    again = Told(TWO_JOIN, ONE_IS_GONE, ALL_ARE_GONE, [(40, [epoch(None)])], TWO_JOIN)
    assert again.column("group_generations", "generation", "reason")[4:] == [(1, "first"), (2, "members")]
    assert again.column("partition_moves", "from_member")[6:8] == [(None,), (None,)]


def test_members_of_a_classic_group_that_becomes_a_consumer_group_have_not_joined_it_nor_their_partitions_moved():
    batch = [CLASSIC_IS_DELETED, consumer("a"), epoch(7), target("a", 0, 1), assigned(7), has("a", 7, 0, 1)]
    joined = [consumer("b"), epoch(8), target("a", 0), target("b", 1), assigned(8), has("b", 8, 2)]
    # The member that joins is why the group is converted: its records may be of the same batch.
    for seconds, logs in ((3, [(1, batch), (3, joined)]), (1, [(1, [*batch, *joined])])):
        told = Told([*logs, (5, [has("a", 8, 0)]), (5, [has("b", 8, 1, 2)])])
        assert told.column("member_changes", "generation", "member_id", "change") == [(8, "b", "joined")]
        assert told.column("group_generations", "generation", "reason", "since_last_ms") == [(8, "members", (seconds - 1) * 1000)]
        columns = ("partition", "from_member", "to_member", "kept_ms")
        assert told.column("partition_moves", *columns) == [(2, None, "b", None), (1, "a", "b", (5 - seconds) * 1000)]


def test_members_of_a_consumer_group_that_becomes_a_classic_one_are_not_gone():
    told = Told(TWO_JOIN, [(20, [*removed("a"), *removed("b"), epoch(None)])])
    columns = ("member_id", "change")
    assert told.column("member_changes", *columns)[2:] == [("a", CONVERTED), ("b", CONVERTED)]
    assert told.column("partition_moves", "to_member")[3:] == []
    # Who was gone before is.
    told = Told(TWO_JOIN, ONE_IS_GONE, [(30, [*removed("a"), epoch(None)])])
    assert told.column("member_changes", *columns)[2:] == [("b", "gone"), ("a", CONVERTED)]


@pytest.mark.parametrize(
    ("records", "topic"),
    [([], "unknown:AAAAAAAAAAAAAAAAAAAAAg"), ([topics_of_old(deleted="AAAAAAAAAAAAAAAAAAAAAg")], "deleted")],
)
def test_a_topic_whose_name_is_not_known_is_told_as_unknown(records, topic):
    other = "AAAAAAAAAAAAAAAAAAAAAg"
    joined = [*records, consumer("a"), epoch(1), target("a", 0, topic_id=other), assigned(1), has("a", 1, 0, topic_id=other)]
    told = Told([(1, joined)])
    assert told.column("partition_moves", "topic") == [(topic,)]
    assert told.rows["group_generations"][0]["assignment"] == [{"member_id": "a", "topic": topic, "partitions": [0]}]


@pytest.mark.parametrize(
    ("wanted", "assignor"),
    [((None, None), None), (("range", None), "range"), (("range", "uniform"), None), (("uniform", "uniform"), "uniform")],
)
def test_the_assignor_is_the_one_that_most_members_want_if_any_does(wanted, assignor):
    members = [consumer(f"m-{number}", assignor=each) for number, each in enumerate(wanted)]
    assert Told([(1, [*members, epoch(1), assigned(1)])]).column("group_generations", "protocol") == [(assignor,)]


def test_the_group_of_now_has_what_its_members_have_and_its_state():
    states = [Told(TWO_JOIN[:upto]).state for upto in range(1, 6)]
    assert states == ["Stable", "Reconciling", "Reconciling", "Reconciling", "Stable"]
    assert Told(TWO_JOIN, ONE_IS_GONE[:1]).state == "Assigning"
    assert Told(TWO_JOIN, ONE_IS_GONE, ALL_ARE_GONE).state == "Empty"
    now = Told(TWO_JOIN[:3]).story.now().columns
    assert (now["generation"], now["group_type"], now["at"], now["record_offset"]) == (2, "Consumer", 6_000_000, 11)
    assert [(each["member_id"], each["assignment"]) for each in now["members"]] == [
        ("a", [{"topic": "orders", "partitions": [0, 1]}]),
        ("b", []),
    ]


@pytest.mark.parametrize("logs", [(TWO_JOIN, ONE_IS_GONE, ALL_ARE_GONE), (STATIC, [(55, [*removed("s-1"), epoch(3)])])])
def test_a_story_that_is_put_away_after_each_record_is_the_same(logs):
    whole, cut = Told(*logs), Told(*logs, is_cut=True)
    assert cut.rows == whole.rows
    assert cut.story.state() == whole.story.state()


def test_of_what_compaction_left_nothing_is_told_that_is_not_known():
    """The newest record of each key, in the order of the log: the epoch before the member that raised it, which wrote again."""
    left = [epoch(5), target("a", 0), assigned(5), has("a", 5, 0), consumer("a")]
    told = Told([(1, left)])
    assert told.rows["group_generations"] == told.rows["member_changes"] == []
    assert told.state == "Stable"
    assert told.column("partition_moves", "from_member", "to_member") == [(None, "a")]
    # Who was removed, and whose other records were compacted away, is nobody that was known.
    assert Told([(1, [epoch(5), *removed("b")])]).rows["member_changes"] == []
