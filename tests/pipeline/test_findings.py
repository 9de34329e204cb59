"""Each kind of finding: of tables that have it, it is found, as grave as it is; of tables that hardly do not, it is not.

Above each test stands its history (``given``), of subjects that no other test has; what is found in all of them together is
looked for once.
"""

import json
from collections import defaultdict

import pytest

from odradek.pipeline.findings import detect
from odradek.pipeline.findings.finding import FINDING, Thresholds
from odradek.pipeline.findings.offsets import stuck_partitions
from tests.pipeline.table_rows import NOW_S, at, change, end, generation, move, opened, owning, reader, sample, transaction
from tests.pipeline.test_share_findings import KINDS_OF_SHARES
from tests.project.documents import DOCS, table

THRESHOLDS = Thresholds()

history: dict[str, list[dict]] = defaultdict(list)


def given(**tables):
    """These rows are in the tables."""
    for name, rows in tables.items():
        history[name].extend(rows)


@pytest.fixture(scope="module")
def all_found(spark_session):
    rows = detect(reader(spark_session, history), THRESHOLDS).orderBy("severity", "from_time").collect()
    return [row.asDict() | {"evidence": json.loads(row.evidence)} for row in rows]


@pytest.fixture
def found(all_found):
    """``found(kind, subject)``: the findings, as dicts, their evidence read; those of high severity first."""
    return lambda kind, subject: [row for row in all_found if (row["kind"], row["subject"]) == (kind, subject)]


given(lag=[sample("now", NOW_S, 0, 0)])


@pytest.mark.parametrize("column", FINDING.names)
def test_no_finding_lacks(all_found, column):
    assert [row for row in all_found if row[column] is None] == []


def test_no_two_findings_have_one_id(all_found):
    assert len({row["id"] for row in all_found}) == len(all_found)


given(
    group_generations=[
        generation("watched", 1, 10, sync_ms=10),
        generation("watched", 2, 20, sync_ms=30),
        generation("watched", 5, 290, sync_ms=20),
        generation("watched", 6, 310, sync_ms=5),
    ],
    member_changes=[
        change("watched", 1, 10, "joined"),
        change("watched", 2, 20, "left"),
        change("watched", 2, 20, "joined"),
        change("watched", 6, 310, "expired"),
    ],
)


def test_figures_of_rebalances_are_those_of_their_window(found):
    first, second = found("rebalances", "watched")
    assert (first["severity"], first["from_time"].minute, first["to_time"].minute) == ("low", 0, 5)
    assert first["evidence"] == {
        "rebalances": 3,
        "sync_ms_avg": 20.0,
        "sync_ms_max": 30,
        "seconds_since_last": 10.0,
        "failed": 2,
        "members_in": 2,
        "members_out": 1,
        "members_bounced": 0,
    }
    assert (second["evidence"]["rebalances"], second["evidence"]["failed"], second["evidence"]["members_out"]) == (1, 0, 1)


given(
    group_generations=[
        *(generation("stormy", number, 20 * number) for number in range(1, 26)),
        *(generation("stormy", 30 + number, 5000 + number) for number in range(10)),
        *(generation("calm", number, 40 * number) for number in range(1, 26)),
    ],
    member_changes=[
        *(change("stormy", n, 20 * n, kind, "restless") for n, kind in enumerate(["joined", "left", "joined"], 1)),
        *(change("stormy", n, 700 + n, "joined") for n in range(9)),
        change("stormy", 1, 20, "joined"),
    ],
)


def test_a_storm_is_so_many_rebalances_in_so_much_time_and_lasts_as_long_as_they_do(found):
    first, second = found("rebalance_storm", "stormy")
    figures = {"rebalances": 25, "rebalances_a_minute": 3.1, "most_changes_by": "restless", "changes": 3}
    assert (first["severity"], first["evidence"]) == ("high", figures)
    assert (first["from_time"], first["to_time"]) == (at(20).replace(tzinfo=None), at(500).replace(tzinfo=None))
    assert second["evidence"] == {"rebalances": 10, "rebalances_a_minute": 66.7}
    assert found("rebalance_storm", "calm") == []


CONSUMERS = {"group_type": "Consumer"}
TEN = range(1, 11)
given(
    group_generations=[
        # Ten members join one after another, each of which raises the epoch; later they go.
        *(generation("starts", n, n, member_count=n, **CONSUMERS) for n in TEN),
        *(generation("starts", 10 + n, 200 + n, member_count=10 - n, **CONSUMERS) for n in TEN),
        # One comes and goes, and comes again.
        generation("crashes", 1, 0, member_count=1, **CONSUMERS),
        *(generation("crashes", 1 + n, 10 * n, member_count=1 + n % 2, **CONSUMERS) for n in TEN),
        # The same members, for whom everything is assigned anew.
        *(generation("restless", n, 10 * n, member_count=3, **CONSUMERS) for n in range(1, 12)),
        # In a classic group each one that joins stops all others.
        *(generation("classic starts", n, n, member_count=n, group_type="Classic") for n in TEN),
    ],
    member_changes=[
        *(change("starts", n, n, "joined", "worker") for n in TEN),
        *(change("starts", 10 + n, 200 + n, "gone", "worker") for n in TEN),
        *(change("crashes", 1 + n, 10 * n, "gone" if n % 2 == 0 else "joined", "crashing") for n in TEN),
    ],
)


def test_members_of_a_consumer_group_that_start_together_are_no_storm_and_those_that_come_and_go_are(found):
    assert found("rebalance_storm", "starts") == found("flapping_member", "starts") == []
    [storm] = found("rebalance_storm", "crashes")
    assert (storm["severity"], storm["evidence"]["rebalances"]) == ("high", 10)
    assert (storm["evidence"]["most_changes_by"], storm["evidence"]["changes"]) == ("crashing", 10)
    assert [row["evidence"]["returns"] for row in found("flapping_member", "crashes")] == [4]
    assert [row["evidence"]["rebalances"] for row in found("rebalance_storm", "restless")] == [11]
    assert [row["evidence"]["rebalances"] for row in found("rebalance_storm", "classic starts")] == [10]


given(
    group_generations=[
        generation("skips", 1, 0, **CONSUMERS),
        generation("skips", 5, 10, **CONSUMERS),
        generation("skips", 9, 20, **CONSUMERS, state="Reconciling", **owning(9, 4, 4)),
    ],
    member_changes=[change("skips", 5, 10, "gone")],
)


def test_an_epoch_of_a_consumer_group_without_an_assignment_has_not_failed_and_uneven_ones_are_found(found):
    [figures] = found("rebalances", "skips")
    assert (figures["evidence"]["failed"], figures["evidence"]["members_out"]) == (0, 1)
    [uneven] = found("uneven_assignment", "skips")
    assert uneven["evidence"]["busiest"] == "m0"


given(
    member_changes=[
        *(change("flapping", n, 10 * n, "left" if n % 2 else "joined", "flaky") for n in range(8)),
        change("flapping", 1, 5, "joined", "steady"),
    ]
)


def test_a_member_that_comes_back_again_and_again_flaps(found):
    [flapping] = found("flapping_member", "flapping")
    assert flapping["severity"] == "high"
    told = flapping["evidence"]
    assert (told["client_id"], told["returns"], told["rejoined"]) == ("flaky", 3, 3)


given(
    member_changes=[
        *(change("deployed", n, n, "joined") for n in range(4)),
        *(change("deployed", 10 + n, 100 + n, kind) for n, kind in enumerate(["left", "joined"] * 4)),
    ]
)


def test_a_deployment_of_members_of_one_name_does_not_flap(found):
    assert found("flapping_member", "deployed") == []


given(
    member_changes=[
        change(group, n, 10 * n, "bounced_static", group_instance_id="s-1", client_host=f"/10.0.0.{n}")
        for group, n in (("static-once", 1), ("static", 1), ("static", 2), ("static", 3))
    ]
)


def test_a_static_member_that_bounces_once_is_no_finding_and_often_one_of_medium_severity(found):
    assert found("flapping_member", "static-once") == []
    [bouncing] = found("flapping_member", "static")
    assert (bouncing["severity"], bouncing["evidence"]["group_instance_id"]) == ("medium", "s-1")
    assert bouncing["evidence"]["rejoined"] == 0


UNEVEN = [(4, 2), (3, 0), (9, 4, 4)]
EVEN = [(2, 1), (1, 1, 0), (5, 4), (3,)]
given(group_generations=[generation(f"owns {counts}", 1, 0, **owning(*counts)) for counts in [*UNEVEN, *EVEN]])


@pytest.mark.parametrize("counts", [*UNEVEN, *EVEN])
def test_an_assignment_is_uneven_by_ratio_and_difference(found, counts):
    uneven = found("uneven_assignment", f"owns {counts}")
    assert len(uneven) == (counts in UNEVEN)
    for row in uneven:
        told = row["evidence"]
        assert (told["most"], told["fewest"], told["busiest"]) == (max(counts), min(counts), "m0")
        assert (told["members"], told["partitions"]) == (len(counts), sum(counts))


given(
    group_generations=[
        generation("mended", number, seconds, **owning(*counts))
        for number, seconds, counts in [(1, 0, (4, 0)), (2, 3, (2, 2)), (3, 60, (4, 0)), (4, 62, (2, 2))]
    ]
)


def test_an_assignment_that_was_mended_at_once_or_later_is_not_uneven(found):
    assert found("uneven_assignment", "mended") == []


given(
    lag=[
        *(sample("stuck", 60 * n, 5, 5 + n) for n in range(8)),
        *(sample("stuck-a-while", 60 * n, 5, 5 + n) for n in range(4)),
        *(sample("stuck-once", 60 * n, 5, 5 + n) for n in range(8)),
        sample("stuck-once", 480, 12, 12),
    ]
)


def test_a_partition_that_stands_still_while_its_end_grows_is_stuck(found):
    [stuck] = found("stuck_partition", "stuck")
    assert (stuck["severity"], stuck["evidence"]["committed_offset"], stuck["evidence"]["lag"]) == ("high", 5, 7)
    assert found("stuck_partition", "stuck-a-while") == []
    [moved] = found("stuck_partition", "stuck-once")
    assert (moved["severity"], moved["evidence"]["moved_again"]) == ("medium", True)


given(
    lag=[
        *(sample("idle", 60 * n, 5, 9) for n in range(8)),
        *(sample("moving", 60 * n, 5 + n, 9 + n) for n in range(8)),
    ]
)


def test_a_partition_whose_end_stands_still_or_that_moves_is_not_stuck(found):
    assert found("stuck_partition", "idle") == found("stuck_partition", "moving") == []


# Since when a partition of the topic, which has the group's name, is owned; and what happens then.
OWNED = {
    "poisoned": {},
    "poisoned, and others are well": {"commits": {1: 5}},
    "owned for a while": {"from_s": NOW_S - 299},
    "owned, and not growing": {"ends": [7] * 12},
    "committed in time": {"commits": {0: 250}},
    "committed late": {"commits": {0: 500}},
    "committed before it was owned": {"commits": {0: -1}},
    "given up in time": {"lost_s": 250},
    "given up late": {"lost_s": 500},
    "taken over": {"taken_s": 200},
    "no longer assigned": {"assigned": [("m", "other", [0])]},
}
NOT_OWNED = {"never owned": {}}
for name, what in (OWNED | NOT_OWNED).items():
    since_s = what.get("from_s", 0)
    ends = enumerate(what.get("ends", range(7, 19)))
    moves = [move(name, 1, since_s, name, None, "m")] if name in OWNED else []
    moves += [move(name, 2, what["lost_s"], name, "m", None)] if "lost_s" in what else []
    moves += [move(name, 2, what["taken_s"], name, "m", "n")] if "taken_s" in what else []
    committed = what.get("commits", {}).items()
    given(
        partition_moves=moves,
        group_generations=[generation(name, 1, since_s, assignment=what.get("assigned", [("m", name, [0])]))],
        end_offsets=[end(since_s + 60 * n, offset, name) for n, offset in ends],
        offset_commits=[
            {"group": name, "topic": name, "partition": partition, "at": at(seconds), "kind": "first"}
            for partition, seconds in committed
        ],
    )


def test_a_partition_that_is_read_and_grows_and_is_never_committed_is_found(found):
    [poisoned] = found("never_committed", "poisoned")
    assert (poisoned["severity"], poisoned["from_time"]) == ("high", at(0).replace(tzinfo=None))
    assert poisoned["to_time"] == at(660).replace(tzinfo=None)
    assert poisoned["evidence"] == {
        "topic": "poisoned",
        "partition": 0,
        "client_id": "client of m",
        "member_id": "m",
        "end_offset_then": 7,
        "end_offset": 18,
        "committed_later": False,
        "committed_partitions": 0,
    }
    [row] = found("never_committed", "poisoned, and others are well")
    assert row["evidence"]["committed_partitions"] == 1
    [row] = found("never_committed", "taken over")
    assert (row["severity"], row["evidence"]["member_id"]) == ("high", "n")


def test_one_that_was_committed_late_is_of_medium_severity_and_one_that_was_given_up_without_is_not(found):
    [row] = found("never_committed", "committed late")
    assert (row["severity"], row["evidence"]["committed_later"]) == ("medium", True)
    [row] = found("never_committed", "given up late")
    assert (row["severity"], row["evidence"]["committed_later"]) == ("high", False)


@pytest.mark.parametrize(
    "group",
    [
        "owned for a while",
        "owned, and not growing",
        "committed in time",
        "committed before it was owned",
        "given up in time",
        "no longer assigned",
        *NOT_OWNED,
    ],
)
def test_a_partition_that_is_not_long_assigned_or_does_not_grow_or_is_committed_is_no_finding(found, group):
    assert found("never_committed", group) == []


EMPTY = {"state": "Empty", "member_count": 0, "members": []}
given(
    lag=[sample(group, 60 * n, 5, 5 + n) for group in ("manned", "given-up", "ended") for n in range(8)],
    group_generations=[
        generation("manned", 1, -10),
        generation("given-up", 1, -10),
        generation("given-up", 2, 30, **EMPTY),
        generation("ended", 1, -10),
        generation("ended", 2, 425, **EMPTY),
    ],
)


@pytest.mark.parametrize(("group", "severity"), [("manned", "high"), ("given-up", "low"), ("ended", "high")])
def test_a_partition_that_nobody_was_there_to_move_is_of_low_severity(found, group, severity):
    assert [row["severity"] for row in found("stuck_partition", group)] == [severity]


def test_what_is_found_again_with_more_to_tell_has_the_same_id(spark, found):
    longer = {"lag": [sample("stuck", 60 * n, 5, 5 + n) for n in range(12)]}
    [late] = stuck_partitions(reader(spark, longer), THRESHOLDS).collect()
    [early] = found("stuck_partition", "stuck")
    assert late.id == early["id"]
    assert late.to_time > early["to_time"]


given(
    lag=[
        sample("catching-up", 0, 0, 100),
        sample("catching-up", 10, 50, 110),
        sample("catching-up", 0, 0, 10, partition=1),
        sample("catching-up", 10, 10, 10, partition=1),
    ]
)


def test_lag_has_percentiles_and_a_time_to_catch_up(found):
    [figures] = found("lag", "catching-up")
    assert figures["severity"] == "low"
    assert figures["evidence"] == {
        "lag": 60,
        "lag_p50": 10,
        "lag_p95": 100,
        "lag_p99": 100,
        "lag_max": 100,
        "consumed_per_s": 6.0,
        "produced_per_s": 1.0,
        "catch_up_s": 12.0,
    }


given(
    lag=[
        sample("falling-behind", 0, 0, 20_000),
        sample("falling-behind", 60, 10, 30_000),
        sample("soon-there", 0, 0, 20_000),
        sample("soon-there", 60, 10_000, 20_000),
        sample("seen-once", 0, 0, 20_000),
    ]
)


@pytest.mark.parametrize(
    ("group", "severity", "catch_up_s"),
    [("falling-behind", "medium", None), ("soon-there", "low", 60.0), ("seen-once", "low", None)],
)
def test_lag_that_is_much_and_not_made_up_is_of_medium_severity(found, group, severity, catch_up_s):
    [figures] = found("lag", group)
    assert (figures["severity"], figures["evidence"].get("catch_up_s")) == (severity, catch_up_s)


given(
    offset_commits=[
        {"group": "rewound", "topic": "t", "at": at(1), "partition": n, "kind": kind, "delta": delta}
        for n, (kind, delta) in enumerate([("backward", -5), ("backward", -9), ("progress", 3)])
    ]
)


def test_commits_that_went_backward_are_counted_by_topic(found):
    [backward] = found("backward_commits", "rewound")
    assert backward["evidence"] == {"topic": "t", "commits": 2, "partitions": 2, "records_back_at_most": 9}


given(transactions=[transaction("hung-1", 0, 61_000, "timed_out"), transaction("hung-1", 100, 61_000, "aborted")])


def test_a_transaction_that_timed_out_hung(found):
    [hung] = found("hanging_transaction", "hung-1")
    assert (hung["severity"], hung["evidence"]["open_s"]) == ("high", 61.0)
    assert hung["evidence"]["partitions"] == [{"topic": "t", "partition": 0}]


given(
    open_transactions=[
        opened("past", "Ongoing", 100, 95),
        opened("within", "Ongoing", 60, 55),
        opened("decided", "PrepareCommit", 60, 35),
        opened("about-to-complete", "PrepareCommit", 60, 10),
    ]
)


def test_a_transaction_that_is_open_past_its_timeout_or_long_in_prepare_hangs(found):
    assert [row["evidence"]["what"] for row in found("hanging_transaction", "past")] == ["open past its timeout"]
    told = [row["evidence"]["what"] for row in found("hanging_transaction", "decided")]
    assert told == ["decided, and its markers are not written"]
    assert found("hanging_transaction", "within") == found("hanging_transaction", "about-to-complete") == []


given(
    transactions=[
        *(transaction(f"quick-{n}", n, 100) for n in range(9)),
        *(transaction(f"batch-{n}", n, 30_000) for n in range(9)),
        transaction("quick-0", 50, 12_000),
    ]
)


def test_a_transaction_is_slow_beside_the_others_of_its_application(found):
    [slow] = found("slow_transaction", "quick-0")
    assert (slow["severity"], slow["evidence"]["median_ms"], slow["evidence"]["total_ms"]) == ("medium", 100, 12_000)
    assert [found("slow_transaction", f"batch-{n}") for n in range(9)] == [[]] * 9


UUID = "0123abcd-0123-0123-0123-0123456789ab"
given(
    transactions=[
        *(transaction(f"app-{UUID}-{n % 2}", n, 10, "aborted" if n % 2 else "committed") for n in range(10)),
        *(transaction("good", n, 10) for n in range(20)),
        transaction("rare", 0, 10, "aborted"),
    ]
)


@pytest.mark.parametrize(
    ("application", "severity", "share"), [("app", "medium", 0.5), ("rare", "low", 1.0), ("good", "low", 0.0)]
)
def test_the_share_that_an_application_aborts_is_of_all_its_instances(found, application, severity, share):
    [row] = found("aborted_share", application)
    assert (row["severity"], row["evidence"]["share"]) == (severity, share)
    assert row["evidence"]["transactional_ids"] == (2 if application == "app" else 1)


def test_the_documents_table_has_every_kind(all_found):
    kinds = {row["kind"].strip("`") for row in table(DOCS / "pipeline.md", "kind", "severity", "subject", "what")}
    assert kinds == {row["kind"] for row in all_found} | KINDS_OF_SHARES | {"moving_task"}
