"""Cleaning a log from the job to the last swap."""

from collections.abc import Callable

from odradek.storage.cleaner.cleaner import CleanStats, SwapIn
from odradek.storage.cleaner.job import CleanJob
from odradek.storage.cleaner.plan import CleaningAborted
from odradek.storage.cleaner.swap import OnLoop, swap_in
from odradek.storage.errors import LogCorrupt


def clean_log(job: CleanJob, clean: Callable[[SwapIn], CleanStats], on_loop: OnLoop) -> CleanStats:
    """Clean a log; in any thread, if ``on_loop`` runs on the loop what it is given.

    ``clean`` carries the job's plan out (odradek.storage.cleaner.cleaner), here or in another process, and calls what it is given
    with each cleaned segment. Raises LogCorrupt, OSError, CleaningAborted, and whatever else ``clean`` does: segments that were
    swapped in by then stay so, and nothing else is left behind.
    """
    try:
        return clean(lambda group, cleaned: swap_in(job, group, cleaned, on_loop))
    except LogCorrupt as error:
        # Its files may be another log's by now.
        if job.is_void:
            raise CleaningAborted from error
        raise
