"""The differences between two transcripts, and the names that docs/differences-all.md gives them.

The table there with the columns of ``COLUMNS`` has a row for each: ``answer`` is ``API field.field``, where a field is a path
in the response without the arrays' indexes, or ``connection``; ``case`` is ``vN LABEL``. Elements of ``_LISTS_OF_THE_BROKER``
are in the path: ``configs(retention.ms).config_source``. Each cell is a pattern, or several with `` or `` between them, in which
``*`` stands for anything. What a broker does not say is ``-``.

Where two brokers give different error codes, the code is the difference; the fields beside it follow from it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from re import compile as regex
from re import escape
from typing import Any

from tests.campaigns.wire_differential.driver import Transcript
from tests.campaigns.wire_differential.script import Script
from tests.project.documents import DOCS, table

COLUMNS = ("answer", "case", "Kafka", "odradek", "why")
ABSENT = "-"
_IDENTITIES = (
    *("name", "topic", "topic_name", "group_id", "transactional_id", "resource_name", "api_key", "partition_index", "partition"),
    *("index", "member_id", "path", "node_id", "broker_id", "feature", "producer_id", "resource_type", "replica_id"),
)
# Arrays of what a broker has of its own, whose elements differ for a reason each.
_LISTS_OF_THE_BROKER = frozenset({"configs", "api_keys"})


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of one answer. ``answer`` and ``case`` as in the table."""

    script: str
    answer: str
    case: str
    kafka: str
    odradek: str

    def __str__(self) -> str:
        return f"{self.script}: {self.answer} | {self.case} | {self.kafka} | {self.odradek}"


@dataclass(frozen=True, slots=True)
class Named:
    """A row of the table."""

    answer: str
    case: str
    kafka: str
    odradek: str

    def names(self, difference: Difference) -> bool:
        """Whether the row is about it."""
        return (
            _fits(self.answer, difference.answer)
            and _fits(self.case, difference.case)
            and _fits(self.kafka, difference.kafka)
            and _fits(self.odradek, difference.odradek)
        )


@cache
def _pattern(cell: str) -> Any:
    return regex("|".join(".*".join(escape(part) for part in each.split("*")) for each in cell.split(" or ")))


def _fits(cell: str, text: str) -> bool:
    return _pattern(cell).fullmatch(text) is not None


def named() -> list[Named]:
    """The rows of docs/differences-all.md."""
    return [Named(*(row[column].strip("`") for column in COLUMNS[:4])) for row in table(DOCS / "differences-all.md", *COLUMNS)]


def unnamed(differences: Iterable[Difference], rows: Iterable[Named]) -> tuple[list[Difference], Counter[Named]]:
    """(differences without a row, how many each row names)."""
    rows = list(rows)
    uses: Counter[Named] = Counter(dict.fromkeys(rows, 0))
    left = []
    for difference in differences:
        fitting = [row for row in rows if row.names(difference)]
        uses.update(fitting[:1])
        if not fitting:
            left.append(difference)
    return left, uses


def differences(script: Script, kafka: Transcript, odradek: Transcript) -> Iterator[Difference]:
    """All of them."""
    for during, (theirs, ours) in enumerate(zip(kafka, odradek, strict=True)):
        there, here = dict(map(tuple, theirs)), dict(map(tuple, ours))
        for number in sorted(there.keys() | here.keys()):
            step = script.steps[number]
            api = getattr(step.api, "name", str(step.api))
            late = "" if number == during else f" during {script.steps[during].label}"
            case = f"v{step.version} {step.label}{late}"
            for path, one, other in _differ("", there.get(number, ABSENT), here.get(number, ABSENT)):
                yield Difference(script.name, f"{api} {path or 'connection'}", case, _shown(one), _shown(other))


def _differ(path: str, kafka: Any, odradek: Any) -> Iterator[tuple[str, Any, Any]]:
    if kafka == odradek:
        return
    if isinstance(kafka, dict) and isinstance(odradek, dict):
        if kafka.keys() == odradek.keys():
            codes = [name for name in kafka if name.endswith("error_code") and kafka[name] != odradek[name]]
            for name in codes or kafka:
                yield from _differ(path if name == "answer" else f"{path}.{name}" if path else name, kafka[name], odradek[name])
            return
        path, kafka, odradek = "", _kind(kafka), _kind(odradek)
    elif isinstance(kafka, list) and isinstance(odradek, list):
        there, here = _by_identity(kafka), _by_identity(odradek)
        for identity in sorted(there.keys() | here.keys()):
            one, other = there.get(identity, ABSENT), here.get(identity, ABSENT)
            if ABSENT in (one, other):
                yield f"{path}[]", ABSENT if one == ABSENT else identity, ABSENT if other == ABSENT else identity
            else:
                is_told = path.rpartition(".")[2] in _LISTS_OF_THE_BROKER
                yield from _differ(f"{path}({identity})" if is_told else path, one, other)
        return
    yield path, kafka, odradek


def _kind(answer: dict[str, Any]) -> str:
    """An answer whose shape is another one, shortly: what the connection did, or that there was an answer."""
    if "connection" in answer:
        return str(answer["connection"])
    if "then" in answer:
        return f"{_kind(answer['answer'])}, then {answer['then']}"
    return f"undecodable {answer['undecodable']}" if "undecodable" in answer else "answer"


def _by_identity(items: list[Any]) -> dict[str, Any]:
    """Elements by what they are about, and by their place among those of the same."""
    found: dict[str, Any] = {}
    for item in items:
        if isinstance(item, dict):
            told = [f"{item[name]}" for name in _IDENTITIES if item.get(name) is not None]
            # A topic that is refused has a name, and no id.
            identity = " ".join(told) if told else str(item.get("topic_id", ""))
        else:
            identity = _shown(item)
        number = 0
        while f"{identity}{'~' * number}" in found:
            number += 1
        found[f"{identity}{'~' * number}"] = item
    return found


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text.replace("|", "/")
