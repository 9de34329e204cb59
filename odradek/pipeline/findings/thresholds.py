"""The limits that make a finding, and its severity. Names that end in ``_s`` are seconds. Each limit can be set by its name."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Self

from odradek.pipeline.errors import PipelineError


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The defaults suit a cluster whose groups are deployed a few times a day.

    Attributes:
        window_s: length of the windows of the figures (``rebalances``, ``lag``); windows start at its multiples.
        storm_rebalances: the number of a group's rebalances within ``storm_window_s`` that make a storm.
        storm_window_s: see ``storm_rebalances``.
        flap_returns: the number of a member's returns within ``flap_window_s`` that make it flap.
        flap_window_s: see ``flap_returns``.
        stuck_s: a partition is stuck if its committed offset stayed the same for this long while its end offset grew; and it is
            one that never committed if it was assigned for this long, without any commit, while its end offset grew.
        lag_records: lag below this is no trouble, however slowly it shrinks.
        catch_up_s: lag that would be caught up within this time is no trouble.
        uneven_ratio: an assignment is uneven if one member has this many times the partitions of another,
        uneven_partitions: at least this many more of them,
        uneven_s: and for this long; during a rebalance an uneven assignment is normal.
        slow_transaction_s: a transaction is slow if it took this long,
        slow_ratio: and this many times the median of its application.
        open_grace_s: a transaction is hanging if it is open this long past its timeout, or in a prepare state this long.
        aborted_share: an application that aborts this share of its transactions in an hour has severity medium,
        aborted_transactions: if it had this many transactions in the hour.
    """

    window_s: float = 300.0
    storm_rebalances: float = 10.0
    storm_window_s: float = 300.0
    flap_returns: float = 3.0
    flap_window_s: float = 900.0
    stuck_s: float = 300.0
    lag_records: float = 10_000.0
    catch_up_s: float = 3600.0
    uneven_ratio: float = 2.0
    uneven_partitions: float = 2.0
    uneven_s: float = 10.0
    slow_transaction_s: float = 10.0
    slow_ratio: float = 5.0
    open_grace_s: float = 30.0
    aborted_share: float = 0.2
    aborted_transactions: float = 10.0

    def with_settings(self, settings: Mapping[str, str]) -> Self:
        """Return the thresholds with these settings. Raises PipelineError for an unknown name or a malformed number."""
        known = {field.name for field in fields(self)}
        changed = {}
        for name, text in settings.items():
            if name not in known:
                raise PipelineError(f"there is no threshold {name!r}; thresholds: {', '.join(sorted(known))}")
            try:
                changed[name] = float(text)
            except ValueError as failure:
                raise PipelineError(f"the threshold {name} is {text!r}: give a number") from failure
            if not changed[name] > 0:
                raise PipelineError(f"the threshold {name} is {text}: give a number above 0")
        return replace(self, **changed)
