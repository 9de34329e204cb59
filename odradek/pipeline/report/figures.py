"""The drawings, as plotly figures. The page sets the colours of paper and ink, for light and for dark."""

import pandas as pd
import plotly.graph_objects as go

from odradek.pipeline.report.data import Span

# Distinguishable with colour-vision deficiency, on white and on near black.
COLOURS = ("#2f7ebc", "#d9822b", "#0f9d8a", "#b0559c", "#7a6fd0", "#b5543c", "#5b8c3e", "#8a8f98")
OUTCOME_COLOURS = {"committed": "#2f7ebc", "aborted": "#d9822b", "timed_out": "#d64545", "fenced": "#7a6fd0"}
_BUSY, _IDLE, _TICK = "#2f7ebc", "#8a8f98", "#d9822b"
_LANE_PX, _FRAME_PX = 26, 96
_GENERATIONS = "generation"
_LABEL = 22
# The same in all drawings of a group, so that their time axes align; the page uses less on a phone.
_LEFT_PX = 170


def members(ticks: pd.DataFrame, segments: pd.DataFrame, span: Span) -> go.Figure:
    """Draw a group's generations: a lane for each member, a bar for each time of equal partitions, a tick for each generation."""
    figure = go.Figure()
    lanes = list(dict.fromkeys(segments.sort_values("at")["lane"]))
    for name, colour, rows in (
        ("has partitions (fainter: fewer)", _BUSY, segments[segments["partitions"] > 0]),
        ("has none", _IDLE, segments[segments["partitions"] == 0]),
    ):
        duration_ms = (rows["until"] - rows["at"]) / pd.Timedelta(milliseconds=1)
        figure.add_bar(
            name=name,
            orientation="h",
            base=_texts(rows["at"]),
            # A bar shorter than a pixel would be invisible.
            x=duration_ms.clip(lower=_length_ms(span) / 1000),
            y=rows["lane"],
            marker={"color": colour, "opacity": _opacities(rows["partitions"], int(segments["partitions"].max()))},
            customdata=rows[["first", "last", "partitions"]],
            hovertemplate="%{y}<br>generations %{customdata[0]}-%{customdata[1]}<br>partitions: %{customdata[2]}<extra></extra>",
        )
    figure.add_scatter(
        name="generation",
        mode="markers",
        x=_texts(ticks["at"]),
        y=[_GENERATIONS] * len(ticks),
        marker={"symbol": "line-ns", "size": 14, "line": {"width": 2, "color": _TICK}},
        customdata=ticks[["generation", "reason", "member_count"]],
        hovertemplate="generation %{customdata[0]}: %{customdata[1]}<br>members: %{customdata[2]}<br>%{x}<extra></extra>",
    )
    return _lanes(figure, [*reversed(lanes), _GENERATIONS], span)


def moves(rows: pd.DataFrame, span: Span) -> go.Figure:
    """Draw partitions that changed owners: a lane for each partition."""
    figure = go.Figure()
    for kind, symbol, colour in (("eager", "circle", COLOURS[1]), ("cooperative", "diamond", COLOURS[2])):
        of_kind = rows[rows["rebalance_kind"] == kind]
        figure.add_scatter(
            name=kind,
            mode="markers",
            x=_texts(of_kind["at"]),
            y=of_kind["lane"],
            marker={"symbol": symbol, "size": 9, "color": colour},
            customdata=of_kind[["moved", "generation"]],
            hovertemplate="%{y}<br>%{customdata[0]}<br>generation %{customdata[1]}<br>%{x}<extra></extra>",
        )
    return _lanes(figure, sorted(rows["lane"].unique(), reverse=True), span)


def lag(rows: pd.DataFrame, span: Span) -> go.Figure:
    """Draw records behind: a line for each partition or group."""
    figure = go.Figure()
    for colour, (name, line) in zip(COLOURS, rows.groupby("line", sort=False), strict=False):
        figure.add_scatter(
            name=name,
            mode="lines+markers",
            x=_texts(line["at"]),
            y=line["lag"],
            line={"color": colour, "width": 2},
            marker={"size": 4},
            hovertemplate="%{fullData.name}: %{y:,} behind<br>%{x}<extra></extra>",
        )
    figure.update_yaxes(title={"text": "records behind", "standoff": 8}, rangemode="tozero")
    return _framed(figure, span, 300)


def transactions(rows: pd.DataFrame, span: Span) -> go.Figure:
    """Draw durations of transactions, by outcome, on a logarithmic scale."""
    figure = go.Figure()
    for outcome, colour in OUTCOME_COLOURS.items():
        of_outcome = rows[rows["outcome"] == outcome]
        if of_outcome.empty:
            continue
        figure.add_scatter(
            name=outcome.replace("_", " "),
            mode="markers",
            x=_texts(of_outcome["at"]),
            # A logarithmic scale has no 0.
            y=of_outcome["total_ms"].clip(lower=1),
            marker={"size": 7, "color": colour, "opacity": 0.8},
            customdata=of_outcome[["transactional_id", "alike"]],
            hovertemplate="%{customdata[0]}: %{y:,} ms<br>%{x}<br>the slowest of %{customdata[1]:,}<extra></extra>",
        )
    figure.update_yaxes(title={"text": "ms", "standoff": 8}, type="log", dtick=1)
    return _framed(figure, span, 340)


def _lanes(figure: go.Figure, lanes: list[str], span: Span) -> go.Figure:
    figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=lanes,
        tickmode="array",
        tickvals=lanes,
        ticktext=[lane if len(lane) <= _LABEL else f"{lane[: _LABEL - 1]}…" for lane in lanes],
        range=[-0.6, len(lanes) - 0.4],
    )
    figure.update_layout(barmode="overlay", bargap=0.3)
    return _framed(figure, span, _FRAME_PX + _LANE_PX * max(2, len(lanes)))


def _framed(figure: go.Figure, span: Span, height_px: int) -> go.Figure:
    margin = pd.Timedelta(milliseconds=_length_ms(span) * 0.02)
    figure.update_xaxes(type="date", range=[_text(span.first - margin), _text(span.last + margin)], nticks=6)
    figure.update_layout(
        template="none",
        height=height_px,
        margin={"l": _LEFT_PX, "r": 12, "t": 34, "b": 44},
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
        showlegend=True,
        hovermode="closest",
    )
    return figure


def _opacities(partitions: pd.Series, most: int) -> pd.Series:
    return 0.4 + 0.6 * partitions / max(1, most)


def _length_ms(span: Span) -> float:
    return max(1.0, float((span.last - span.first).total_seconds() * 1000))


def _texts(times: pd.Series) -> pd.Series:
    """Return times as text without a zone. With a zone plotly would convert them to the reader's."""
    return times.dt.strftime("%Y-%m-%d %H:%M:%S.%f")


def _text(time: pd.Timestamp) -> str:
    return str(time.strftime("%Y-%m-%d %H:%M:%S.%f"))
