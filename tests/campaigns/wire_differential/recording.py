"""What Apache Kafka has answered to the short form's scripts, in a file: ``recorded.json.xz``.

JSON: ``kafka`` is the version; ``answers`` holds each distinct answer once; ``scripts`` has for each name its digest and its
transcript, in which numbers stand for answers. The digest is that of the requests: a recording of other requests is not used,
and a test says so.
"""

import json
import lzma
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.kafka_jars import VERSION
from odradek.broker.api import SERVED
from tests.campaigns.wire_differential.cases.every import SLICES, every
from tests.campaigns.wire_differential.driver import Transcript
from tests.campaigns.wire_differential.script import Script

PATH = Path(__file__).parent / "recorded.json.xz"
_SEEDS = range(1, 13)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One script's digest, and what Kafka answered."""

    digest: str
    transcript: Transcript


def short() -> Iterator[Script]:
    """The scripts of the short form: of each API the newest version and one other, all wrong keys, and some seeds."""
    chosen = {f"{key.name}/v{served.max_version}" for key, served in SERVED.items()}
    older = {f"{key.name}/v{(served.min_version + served.max_version) // 2}" for key, served in SERVED.items()}
    for script in every(SLICES, _SEEDS):
        place = script.name.partition("/")[2]
        if "/v" not in script.name or place in chosen or (place in older and script.slice in {"valid", "unknown"}):
            yield script


def write(
    transcripts: Iterable[tuple[Script, Transcript]], path: Path = PATH, *, others: Mapping[str, Recorded] = MappingProxyType({})
) -> int:
    """Write them, and ``others`` of an earlier recording; the file's size in bytes."""
    numbers: dict[str, int] = {}
    scripts: dict[str, Any] = {}
    new = {script.name: Recorded(script.digest(), transcript) for script, transcript in transcripts}
    for name, recorded in {**others, **new}.items():
        told = [[[who, _number(numbers, answer)] for who, answer in during] for during in recorded.transcript]
        scripts[name] = [recorded.digest, told]
    content = {"kafka": VERSION, "answers": [json.loads(answer) for answer in numbers], "scripts": scripts}
    path.write_bytes(lzma.compress(json.dumps(content, separators=(",", ":")).encode(), preset=9))
    return path.stat().st_size


def _number(numbers: dict[str, int], answer: Any) -> int:
    text = json.dumps(answer, sort_keys=True)
    return numbers.setdefault(text, len(numbers))


def read(path: Path = PATH) -> Mapping[str, Recorded]:
    """By the script's name. ValueError for a recording of another version of Kafka."""
    content = json.loads(lzma.decompress(path.read_bytes()))
    if content["kafka"] != VERSION:
        reason = f"{path.name} is of Apache Kafka {content['kafka']}, not {VERSION}"
        raise ValueError(reason)
    answers = content["answers"]
    return {
        name: Recorded(digest, [[(who, answers[number]) for who, number in during] for during in told])
        for name, (digest, told) in content["scripts"].items()
    }
