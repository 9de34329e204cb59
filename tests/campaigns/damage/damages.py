"""What is done to files: each is removed, emptied, cut, or swapped with another partition's."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.record_batch import LOG_OVERHEAD
from tests.campaigns.damage.life import DATA_DIRS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DIRECTORY_REMOVED = "removed, with all"
_TAIL_BYTES = 5
# Partitions whose files change places: the first with each of the others, and so on.
_PARTNERS = {
    "plain-0": ("twin-0", "other-0"),
    "short-0": ("plain-0",),
    "trimmed-0": ("plain-0",),
    "latest-0": ("twin-0", "plain-0"),
    "ledger-0": ("journal-0", "plain-0"),
    "repeating-0": ("again-0", "twin-0"),
    "__consumer_offsets-0": ("__consumer_offsets-1", "plain-0"),
    "__transaction_state-1": ("__consumer_offsets-0",),
}


class Damage(NamedTuple):
    """``paths`` are the files that are damaged, one or two of them; ``files`` is all that is left, damaged."""

    kind: str
    paths: tuple[str, ...]
    files: dict[str, bytes]


def kind_of(path: str) -> str:
    """The kind of a file: its name, or what follows the offset in it."""
    name = path.rpartition("/")[2]
    if name[:20].isdecimal():
        name = name[20:].partition("-")[0] + "." + name.rpartition(".")[2]
        name = name.removeprefix(".")
        name = f"{'snapshot of metadata' if name == 'checkpoint' else name}"
    owner = "metadata" if "/__cluster_metadata-0/" in path else ""
    return f"{name} ({owner})" if owner and owner not in name else name


def damages(files: Mapping[str, bytes]) -> Iterator[Damage]:
    """Every damage of every file."""
    for path, content in files.items():
        rest = {other: data for other, data in files.items() if other != path}
        yield Damage("removed", (path,), rest)
        for kind, left in _cuts(path, content):
            if left != content:
                yield Damage(kind, (path,), rest | {path: left})
        for partner in _partners(path, files):
            if files[partner] != content:
                yield Damage("swapped", (path, partner), rest | {path: files[partner], partner: content})
    directories = sorted({path.rpartition("/")[0] for path in files} - set(DATA_DIRS))
    for directory in directories:
        paths = tuple(path for path in files if path.startswith(f"{directory}/"))
        yield Damage(DIRECTORY_REMOVED, paths, {path: data for path, data in files.items() if path not in paths})


def _cuts(path: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    yield "emptied", b""
    yield "tail cut", content[:-_TAIL_BYTES]
    yield "halved", content[: len(content) // 2]
    if path.endswith(".log"):
        ends = list(batch_ends(content))
        if len(ends) > 1:
            yield "last batch cut", content[: ends[-2]]
    for size in (8, 12, 34):
        if path.endswith({8: ".index", 12: ".timeindex", 34: ".txnindex"}[size]) and len(content) > size:
            yield "last entry cut", content[:-size]


def batch_ends(content: bytes) -> Iterator[int]:
    """Where each batch of a .log ends."""
    position = 0
    while position < len(content):
        position += LOG_OVERHEAD + int.from_bytes(content[position + 8 : position + 12], "big")
        yield position


def _partners(path: str, files: Mapping[str, bytes]) -> Iterator[str]:
    directory, _, name = path.rpartition("/")
    if directory == DATA_DIRS[0]:
        other = f"{DATA_DIRS[1]}/{name}"
        if other in files:
            yield other
        return
    for partner in _PARTNERS.get(directory.rpartition("/")[2], ()):
        suffix = name[20:] if name[:20].isdecimal() else name
        candidates = [other for other in files if f"/{partner}/" in other and other.endswith(suffix)]
        same = [other for other in candidates if other.endswith(f"/{name}")]
        yield from (same or candidates)[:1]
