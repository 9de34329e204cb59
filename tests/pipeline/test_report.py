"""The report in a browser: it says and draws what was found, in light and in dark, on a phone, and stays within its bounds.

(That ``make demo``'s findings are in its report, ``python -m demo`` sees to.)
"""

import re
from html import escape

import pytest

from odradek.pipeline.errors import PipelineError
from odradek.pipeline.findings import FINDING
from odradek.pipeline.report import compose, data, write_report
from odradek.pipeline.schema import local_rows
from tests.chromium import Chromium
from tests.pipeline.table_rows import (
    NOW_S,
    at,
    change,
    delivery,
    generation,
    move,
    owning,
    reader,
    sample,
    task_move,
    transaction,
)

EVIL = '<img src=x onerror="console.error(1)">'
ESCAPED = escape(EVIL)
INK_WHEN_DARK = "rgb(230, 233, 237)"
# Written where a test asks how wide the page came to be.
PROBE = "<script>document.body.dataset.fits = document.documentElement.scrollWidth <= window.innerWidth</script>"

HISTORY = {
    "group_generations": [
        *(generation("stormy", n, 20 * n, **owning(n % 3, 2)) for n in range(1, 31)),
        *(generation(f"calm-{n}", 1, n, **owning(1)) for n in range(data.GROUPS + 3)),
        generation(EVIL, 1, 5, **owning(2, 2), why=f"{EVIL} joined"),
        *(generation("explained", n, n, why=f"change {n}", group_type="Consumer") for n in range(1, data.EXPLAINED + 3)),
    ],
    "member_changes": [change("stormy", n, 10 * n, "left" if n % 2 else "joined", "flaky", member_id="m0") for n in range(8)]
    + [change(EVIL, 1, 5, "joined", EVIL, member_id="m0")],
    "partition_moves": [
        {"group": "stormy", "generation": n, "topic": "t", "partition": 0, "from_member": "m0", "to_member": "m1"}
        | {"at": change("stormy", n, 20 * n, "")["at"], "rebalance_kind": "eager"}
        for n in range(1, 30)
    ]
    + [
        {**move("explained", 7, 8, "t", "m0", "m1"), "from_client_id": "one", "kept_ms": 5012},
        {**move("explained", 7, 8, "t", "m0", "m1", partition=1), "from_client_id": "one"},
    ],
    "lag": [sample("stormy", 60 * n, 5, 5 + n) for n in range(8)] + [sample(EVIL, NOW_S, 0, 3)],
    "transactions": [
        transaction("hung-1", 0, 61_000, "timed_out"),
        *(transaction(f"busy-{n % 3}", n, 10 + n) for n in range(500)),
    ],
    "share_deliveries": [
        *(delivery("senders", n, "accepted", 1, last=1006, partition=n) for n in range(data.SHARE_PARTITIONS)),
        delivery("senders", 70, "returned", 4, partition=3),
        delivery("senders", 90, "archiving", 5, partition=3),
        delivery("senders", 91, "archived", 5, partition=3, previous_state="Archiving"),
        delivery(EVIL, 90, "returned", 1),
    ],
    "share_partitions_now": [{"group": "senders", "topic": "t", "partition": 3, "start_offset": 1007}],
    "task_moves": [
        task_move("sums", 40, None, "p"),
        task_move("sums", 50, "p", "q"),
        task_move("sums", 60, "q", "p", had_standby=True, away_ms=4012),
        task_move("sums", 61, "p", "p"),
        *(task_move(EVIL, n, None, "p", partition=n) for n in range(data.TASKS)),
    ],
    "tasks_now": [{"group": "sums", "subtopology": "0", "partition": 1, "client_id": EVIL, "standby": ["n"]}],
}

FOUND = [
    (f"id-{kind}-{subject}", kind, severity, subject, at(0), at(60), '{"lag":1234567,"partitions":[{"topic":"t","partition":0}]}')
    for kind, severity, subject in (
        ("lag", "low", "calm-1"),
        ("slow_transaction", "medium", "busy-1"),
        ("rebalance_storm", "high", "stormy"),
        ("never_committed", "high", "explained"),
        ("hanging_transaction", "high", "hung-1"),
        ("stuck_partition", "high", "stormy"),
        ("flapping_member", "medium", EVIL),
    )
]


@pytest.fixture(scope="module")
def page(spark_session, tmp_path_factory):
    """The report of ``HISTORY``, a file."""
    read, found = reader(spark_session, HISTORY), local_rows(spark_session, FINDING, FOUND)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(compose(read, found, "the-cluster") + PROBE, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    return Chromium(tmp_path_factory.mktemp("chromium"))


@pytest.fixture(scope="module")
def opened(chromium, page):
    return chromium.open(page)


def text_of(html):
    """What a reader sees of the page's body."""
    body = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


def test_the_browser_has_no_complaint_and_the_findings_are_there(opened):
    assert opened.console == []
    text = text_of(opened.elements)
    assert "high Rebalance storm stormy" in text
    assert "high Hanging transaction hung-1" in text
    assert "high Stuck partition stormy" in text
    assert text.index("medium Slow transaction busy-1") > text.index("high Stuck partition stormy")
    assert "lag 1,234,567 , partitions t-0" in text
    assert "Cluster the-cluster" in text


def test_charts_of_groups_of_which_something_was_found_and_of_all_are_drawn_the_others_wait(opened):
    charts = re.findall(r'<div class="chart[^"]*"[^>]*data-figure="[^"]*"[^>]*>(.{0,40})', opened.elements)
    drawn = sum("plot-container" in beginning for beginning in charts)
    # Three of the stormy group, two each of the one with that name and of the explained one, and those of lag and transactions.
    assert drawn == 9
    assert len(charts) > drawn


def test_members_partitions_and_generations_are_lanes(opened):
    labels = re.findall(r"<text[^>]*>([^<]+)</text>", opened.elements)
    assert {"flaky", "generation", "t-0"} <= set(labels)


def test_the_newest_generations_of_a_consumer_group_are_explained_with_what_moved(opened):
    text = text_of(opened.elements)
    assert "high Never committed explained" in text
    moved = "Moved: t-0 to client of m1 from one, which gave it up after 5,012 ms; t-1 to client of m1 from one."
    assert f"generation 7: change 7. {moved}" in text
    told = re.findall(r"generation (\d+): change", text)
    assert told == [str(n) for n in range(data.EXPLAINED + 2, 2, -1)]


def test_it_is_dark_where_the_reader_likes_it_dark(chromium, page, opened):
    dark = chromium.open(page, dark=True)
    assert dark.console == []
    assert INK_WHEN_DARK in dark.elements
    assert INK_WHEN_DARK not in opened.elements


def test_it_fits_a_phone(chromium, page):
    assert 'data-fits="true"' in chromium.open(page, width=500).elements


def test_what_clients_call_themselves_is_text(page, opened):
    assert EVIL not in page.read_text(encoding="utf-8")
    assert not re.search(r"<img[^>]*onerror", opened.elements)
    assert EVIL.replace("<", "&lt;").replace(">", "&gt;") in opened.elements


def test_it_asks_for_nothing_from_any_network(page):
    html = page.read_text(encoding="utf-8")
    outside_scripts = re.sub(r"<script[^>]*>.*?</script>", "", html, flags=re.DOTALL)
    assert "default-src 'none'" in outside_scripts
    assert not re.search(r"<[^>]*(https?://|\ssrc=)|<link", outside_scripts)


def test_groups_have_a_bound_and_the_worst_come_first(page):
    html = page.read_text(encoding="utf-8")
    named = re.findall(r"<summary><b>([^<]+)</b>", html)
    assert (named[0], len(named)) == ("stormy", data.GROUPS)
    assert "And 6 more groups" in html


def test_the_share_partitions_with_archived_records_come_first(page):
    text = text_of(page.read_text(encoding="utf-8"))
    told = text[text.index("Share groups") :]
    heads = "group partition start offset accepted returned archived most deliveries"
    assert f"{heads} senders t-3 1007 1,000 1 1 5 {ESCAPED} t-0 0 1 0 1 senders t-0 1,000 0 0 1" in told
    assert "And 1 more share partitions" in told


def test_the_tasks_that_moved_most_come_first(page):
    text = text_of(page.read_text(encoding="utf-8"))
    told = text[text.index("Streams groups") :]
    heads = "group task has it now standbys moves between processes to a standby longest pause ms"
    assert f"{heads} sums 0_1 {ESCAPED} 1 3 2 1 4,012 {ESCAPED} 0_0 0 0 0 0 7" in told
    assert "And 1 more tasks" in told


def test_nothing_yet_is_a_page_too(spark):
    html = compose(reader(spark, {}), local_rows(spark, FINDING), None)
    assert "Nothing of high or medium severity." in html


def test_a_place_that_is_none_is_told_before_any_work(spark, tmp_path, warehouse):
    with pytest.raises(PipelineError, match=r"there is no directory .*nowhere for the report"):
        write_report(spark, warehouse, str(tmp_path / "nowhere" / "report.html"))
