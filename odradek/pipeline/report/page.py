"""The page: HTML around the drawings, with all code and styles inline. It loads nothing from a network; its policy forbids it.

Every text that comes from a cluster goes through ``escape``: owners of groups and clients choose their names freely.
"""

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from odradek.pipeline.report.data import Counted, Shown, Span

_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
_KINDS = {
    "rebalances": "Rebalances",
    "rebalance_storm": "Rebalance storm",
    "flapping_member": "Flapping member",
    "uneven_assignment": "Uneven assignment",
    "stuck_partition": "Stuck partition",
    "never_committed": "Never committed",
    "lag": "Lag",
    "backward_commits": "Commits that went backward",
    "hanging_transaction": "Hanging transaction",
    "slow_transaction": "Slow transaction",
    "aborted_share": "Aborted transactions",
    "poison_record": "Poison record",
    "held_record": "Record held until its lock expires",
    "moving_task": "Tasks that move back and forth",
}
SHARE_PARTITION_COLUMNS = {
    "group": "group",
    "where": "partition",
    "start_offset": "start offset",
    "accepted": "accepted",
    "returned": "returned",
    "archived": "archived",
    "deliveries": "most deliveries",
}
TASK_COLUMNS = {
    "group": "group",
    "task": "task",
    "member": "has it now",
    "standbys": "standbys",
    "moves": "moves",
    "between": "between processes",
    "with_standby": "to a standby",
    "away_ms_max": "longest pause ms",
}
APPLICATION_COLUMNS = {
    "application": "application",
    "transactional_ids": "ids",
    "transactions": "transactions",
    "aborted": "aborted",
    "timed_out": "timed out",
    "fenced": "fenced",
    "p50_ms": "median ms",
    "p99_ms": "p99 ms",
    "max_ms": "slowest ms",
}


class Page:
    """A page, built from top to bottom."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._figures: list[str] = []

    def head(self, cluster_id: str | None, span: Span, counted: Counted, severities: dict[str, int]) -> None:
        """Add the heading: the cluster, the span, and the numbers of rows and findings."""
        of = f"Cluster {escape(cluster_id)}, " if cluster_id else ""
        self._add(
            f'<h1>What groups and transactions did</h1><p class="soft">{of}{_time(span.first)} to {_time(span.last)} UTC</p>'
        )
        figures = {
            "high findings": severities.get("high", 0),
            "medium findings": severities.get("medium", 0),
            "groups": counted.groups,
            "generations": counted.generations,
            "commits of offsets": counted.commits,
            "transactions": counted.transactions,
        }
        self._add('<ul class="figures">')
        for name, count in figures.items():
            self._add(f'<li><b>{count:,}</b><span class="soft">{name}</span></li>')
        self._add("</ul>")

    def findings(self, grave: Shown, low: Shown) -> None:
        """Add the grave findings, and the low ones in a fold."""
        self.title("Findings")
        if grave.rows.empty:
            self.text("Nothing of high or medium severity.")
        self._list(grave)
        if not low.rows.empty:
            self._add(f"<details><summary>Of low severity, and figures ({low.of:,})</summary>")
            self._list(low)
            self._add("</details>")

    def title(self, text: str) -> None:
        """Begin a section."""
        self._add(f"<h2>{escape(text)}</h2>")

    def text(self, text: str) -> None:
        """Add a line of text."""
        self._add(f'<p class="soft">{escape(text)}</p>')

    def group(self, row: Any, figures: Iterable[tuple[str, go.Figure]], explained: pd.DataFrame) -> None:
        """Add a group with its drawings and its explained generations, unfolded if the group has findings."""
        badges = "".join(
            f' <span class="badge {name}">{count:,} {name}</span>'
            for name, count in (("high", int(row.high)), ("medium", int(row.medium)))
            if count
        )
        told = f"{int(row.generations):,} generations, {int(row.members):,} members now"
        self._add(f"<details{' open' if badges else ''}><summary><b>{escape(row.group)}</b>")
        self._add(f'<span class="soft">{told}</span>{badges}</summary>')
        for title, figure in figures:
            self._add(f"<h3>{escape(title)}</h3>")
            self.figure(figure)
        if not explained.empty:
            self._explain(explained)
        self._add("</details>")

    def figure(self, figure: go.Figure) -> None:
        """Add a drawing."""
        name = f"figure-{len(self._figures)}"
        self._figures.append(f'<script type="application/json" id="{name}">{_within_script(figure.to_json())}</script>')
        height_px = int(figure.layout.height)
        self._add(f'<div class="chart" style="height:{height_px}px" data-figure="{name}"></div>')

    def table(self, shown: Shown, columns: dict[str, str], what: str) -> None:
        """Add a table of these columns, each with its heading. ``what`` the rows are, in the plural."""
        heads = "".join(f"<th>{name}</th>" for name in columns.values())
        self._add(f'<div class="scrolls"><table><thead><tr>{heads}</tr></thead><tbody>')
        for row in shown.rows[list(columns)].itertuples(index=False):
            cells = "".join(f"<td>{escape(str(value) if isinstance(value, str) else f'{value:,}')}</td>" for value in row)
            self._add(f"<tr>{cells}</tr>")
        self._add("</tbody></table></div>")
        self._rest(shown, what)

    def html(self) -> str:
        """Return the whole page."""
        here = files("odradek.pipeline.report")
        style, script = (here.joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
        return "\n".join(
            (
                '<!doctype html><html lang="en"><head><meta charset="utf-8">',
                f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                f"<title>odradek: what groups and transactions did</title><style>{style}</style></head><body>",
                *self._parts,
                *self._figures,
                f"<script>{get_plotlyjs()}</script><script>{script}</script></body></html>",
            )
        )

    def _explain(self, generations: pd.DataFrame) -> None:
        """Add the reasons for the newest generations, the newest first."""
        self._add('<h3>Why, as far as the log knows</h3><ul class="why">')
        for row in generations[::-1].itertuples():
            moved = f' <span class="soft">Moved: {escape(row.moved)}.</span>' if isinstance(row.moved, str) and row.moved else ""
            self._add(f"<li><time>{_time(row.at)}</time> generation {row.generation}: {escape(row.why)}.{moved}</li>")
        self._add("</ul>")

    def _list(self, shown: Shown) -> None:
        self._add('<ul class="findings">')
        for row in shown.rows.itertuples():
            what = f"<b>{escape(_KINDS.get(row.kind, row.kind))}</b> {escape(row.subject)}"
            when = f"<time>{_time(row.from_time)} to {_time(row.to_time)}</time>"
            self._add(f'<li class="{escape(row.severity)}"><span class="severity">{escape(row.severity)}</span>')
            self._add(f'<span>{what} {when}</span><span class="evidence">{_evidence(row.evidence)}</span></li>')
        self._add("</ul>")
        self._rest(shown, "findings")

    def _rest(self, shown: Shown, what: str) -> None:
        if shown.of > len(shown.rows):
            self.text(f"And {shown.of - len(shown.rows):,} more {what}, which are in the warehouse.")

    def _add(self, part: str) -> None:
        self._parts.append(part)


def _evidence(text: str) -> str:
    fields: dict[str, Any] = json.loads(text)
    return ", ".join(
        f"{escape(name.replace('_', ' '))} <b>{escape(_value(value))}</b>" for name, value in fields.items() if value != ""
    )


def _value(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,g}"
        case {"topic": topic, "partition": partition}:
            return f"{topic}-{partition}"
        case Sequence() if not isinstance(value, str):
            return " ".join(map(_value, value))
    return str(value)


def _time(time: pd.Timestamp) -> str:
    return str(time.strftime("%Y-%m-%d %H:%M:%S"))


def _within_script(text: str) -> str:
    """Escape JSON so that it does not end the script element that contains it."""
    return text.replace("<", "\\u003c")
