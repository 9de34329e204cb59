"""The table: a line for each figure, a column for each broker, the ratio to Kafka's, the target and whether it is met."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.scenarios import Target

SUBJECT = "odradek"
REFERENCE = "kafka"
_MILLION = 1_000_000
_THOUSAND = 1_000


@dataclass(frozen=True, slots=True)
class Figure:
    """One line: a figure by the name of each measured broker; a broker whose run failed is absent."""

    title: str
    measure: str
    values: Mapping[str, float]
    target: Target | None = None

    @property
    def ratio(self) -> float | None:
        """The figure of odradek divided by Kafka's; None unless both were measured and Kafka's is above zero."""
        own, reference = self.values.get(SUBJECT), self.values.get(REFERENCE)
        if own is None or not reference:
            return None
        return own / reference

    @property
    def reached(self) -> bool | None:
        """Whether the target is met; None if there is no target, or not enough figures."""
        own = self.values.get(SUBJECT)
        if self.target is None or own is None:
            return None
        return self.target.reached(own, self.ratio)


def quantity(value: float | None) -> str:
    """A figure as in the table: 2.91 M, 14.2 k, 0.731, or a dash."""
    if value is None or value != value:  # noqa: PLR0124 - NaN: the load does not measure it
        return "-"
    if value >= _MILLION:
        return f"{value / _MILLION:.3g} M"
    if value >= _THOUSAND:
        return f"{value / _THOUSAND:.3g} k"
    return f"{value:.3g}"


def table(figures: Sequence[Figure], brokers: Sequence[str]) -> str:
    """All figures as aligned text."""
    verdicts = {True: "yes", False: "NO", None: ""}
    rows = [["", "", *brokers, "ratio", "target", "reached"]]
    last_title = ""
    for figure in figures:
        rows.append(
            [
                figure.title if figure.title != last_title else "",
                figure.measure,
                *(quantity(figure.values.get(broker)) for broker in brokers),
                "" if figure.ratio is None else f"{figure.ratio:.2f}",
                "" if figure.target is None else str(figure.target),
                verdicts[figure.reached],
            ]
        )
        last_title = figure.title
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    numeric = range(2, 3 + len(brokers))
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if column in numeric else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(len(line) for line in lines))
    return "\n".join(lines)


def as_json(figures: Sequence[Figure]) -> list[dict[str, object]]:
    """All figures as plain values, for a file."""
    return [
        {
            "benchmark": figure.title,
            "measure": figure.measure,
            "values": dict(figure.values),
            "ratio": figure.ratio,
            "target": None if figure.target is None else str(figure.target),
            "reached": figure.reached,
        }
        for figure in figures
    ]
