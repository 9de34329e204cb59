"""From where on something is a finding, and how grave it is. Seconds end in ``_s``; each can be set by its name."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Self

from odradek.pipeline.errors import PipelineError


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The defaults suit a cluster whose groups are deployed a few times a day.

    Attributes:
        window_s: the windows of the figures (``rebalances``, ``lag``); they begin at multiples of it.
        storm_rebalances: so many rebalances of a group within ``storm_window_s`` are a storm.
        storm_window_s: the same.
        flap_returns: a member that came back so many times within ``flap_window_s`` flaps.
        flap_window_s: the same.
        stuck_s: a partition stopped moving where what is committed has been the same for so long, while its end grew.
        lag_records: lag below it is no trouble, however slowly it shrinks.
        catch_up_s: nor is lag that would be made up within this time.
        uneven_ratio: an assignment is uneven where one member has so many times the partitions of another.
        uneven_partitions: and so many more of them.
        uneven_s: and has lasted so long; in the midst of a rebalance it may be.
        slow_transaction_s: a transaction that took so long is slow
        slow_ratio: where it is also so many times the median of its application.
        open_grace_s: how far past its timeout a transaction may be open before it is hanging, and how long one may be in prepare.
        aborted_share: an application that aborts this share of its transactions, of at least ``aborted_transactions`` an hour.
        aborted_transactions: the same.
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
        """With these instead. Raises PipelineError for a name or a number that is none."""
        known = {field.name for field in fields(self)}
        changed = {}
        for name, text in settings.items():
            if name not in known:
                raise PipelineError(f"there is no threshold {name!r}: these are {', '.join(sorted(known))}")
            try:
                changed[name] = float(text)
            except ValueError as failure:
                raise PipelineError(f"the threshold {name} is {text!r}: give a number") from failure
            if not changed[name] > 0:
                raise PipelineError(f"the threshold {name} is {text}: give a number above 0")
        return replace(self, **changed)
