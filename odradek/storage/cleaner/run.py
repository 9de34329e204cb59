"""Cleaning a log from the job to the last swap."""

from odradek.storage.cleaner.cleaner import CleanerLimits, CleanStats, Pace, clean
from odradek.storage.cleaner.job import CleanJob
from odradek.storage.cleaner.swap import OnLoop, swap_in


def clean_log(job: CleanJob, limits: CleanerLimits, pace: Pace, on_loop: OnLoop) -> CleanStats:
    """Clean a log; in any thread, if ``on_loop`` runs on the loop what it is given.

    Raises LogCorrupt, OSError, CleaningAborted: segments that were swapped in by then stay so, and nothing else is left behind.
    """
    return clean(job, limits, pace, lambda group, new: swap_in(job, group, new, on_loop))
