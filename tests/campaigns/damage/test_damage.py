"""Damaged files are found and named, or harmless: a share of what the campaign tries, and a check that it finds silence."""

import re

import pytest

from odradek.storage.recovery import log_loader
from tests.broker_process import REPOSITORY
from tests.campaigns.damage.explore import BAD, OFFLINE, REFUSED, SILENT, explore, start_on
from tests.campaigns.damage.life import live

IDS = (("/data", "Q"), ("/more", "g"))
PLAIN_END = 52
# Another share on every day would hide which change broke something.
_EVERY = 17


@pytest.fixture(scope="module", params=[True, False], ids=["clean", "killed"])
def left(request):
    return live(is_clean=request.param)


def test_a_damaged_file_is_found_and_named_or_does_no_harm(left):
    judged = explore(left, every=_EVERY)
    assert len(judged) > 40
    assert [each for each in judged if each.verdict in BAD] == []


@pytest.mark.parametrize("directory", ["/data/plain-0", "/data/__consumer_offsets-0"])
@pytest.mark.parametrize("kind", ["removed", "emptied"])
def test_a_log_without_its_first_segment_is_offline(left, directory, kind):
    first = min(path for path in left.files if path.startswith(directory) and path.endswith(".log"))
    (judged,) = explore(left, wanted=lambda damage: damage.kind == kind and damage.paths == (first,))
    assert (judged.verdict, directory in judged.why) == (OFFLINE, True)


def test_a_lost_identity_or_metadata_log_ends_the_start(left):
    lost = {("/data/meta.properties",), ("/data/__cluster_metadata-0/00000000000000000000.log",)}
    judged = explore(left, wanted=lambda damage: damage.kind in ("removed", "emptied") and damage.paths in lost)
    assert [each.verdict for each in judged] == [REFUSED] * 4


def test_a_lost_identity_can_be_written_as_the_operations_page_says():
    left = live(is_clean=True)
    page = (REPOSITORY / "docs" / "operations.md").read_text()
    (text,) = re.findall(r"```text\n(cluster\.id=.*?)```", page, re.DOTALL)
    properties = {f"{directory}/meta.properties": text.replace("AAAQ", f"AAA{letter}").encode() for directory, letter in IDS}
    told = start_on(left, {**left.files, **properties})
    assert "cluster id" in {key[0] for key in told}
    assert told["plain", 0, "offsets"][1][1] == PLAIN_END


@pytest.mark.interpreted
def test_a_start_that_does_not_look_at_the_ends_of_segments_is_found(monkeypatch):
    monkeypatch.setattr(log_loader, "ensure_end", lambda *_: None)
    judged = explore(live(is_clean=True), wanted=lambda damage: damage.kind == "emptied" and "/twin-0/" in damage.paths[0])
    assert SILENT in {each.verdict for each in judged}


def without_line(files, path, name):
    """A checkpoint file without the line of one log, and with the right number of lines."""
    version, _, *lines = files[path].decode().splitlines()
    kept = [line for line in lines if not line.startswith(name)]
    return "\n".join((version, str(len(kept)), *kept, "")).encode()


def test_what_is_left_of_a_log_without_its_end_can_be_had_as_the_operations_page_says():
    left = live(is_clean=True)
    lost, mark = "/more/twin-0/00000000000000000046.log", "/more/.kafka_cleanshutdown"
    points = "/more/recovery-point-offset-checkpoint"
    files = {path: data for path, data in left.files.items() if path not in (lost, mark)}
    told = start_on(left, {**files, points: without_line(files, points, "twin 0 ")})
    assert [offset for _, offset, _ in told["twin", 0, "offsets"][:2]] == [0, 46]


def test_what_is_left_of_a_log_without_its_beginning_can_be_had_as_the_operations_page_says():
    left = live(is_clean=True)
    lost, starts = "/data/plain-0/00000000000000000000.log", "/data/log-start-offset-checkpoint"
    files = {path: data for path, data in left.files.items() if path != lost}
    version, count, *lines = files[starts].decode().splitlines()
    text = "\n".join((version, str(int(count) + 1), *lines, "plain 0 23", ""))
    told = start_on(left, {**files, starts: text.encode()})
    assert [offset for _, offset, _ in told["plain", 0, "offsets"][:2]] == [23, PLAIN_END]
