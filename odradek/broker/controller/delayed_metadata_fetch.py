"""A Fetch of the metadata log for which there was nothing yet."""

from collections.abc import Callable

from odradek.timing.purgatory import DelayedOperation


class DelayedMetadataFetch(DelayedOperation):
    """``answer`` is called as soon as there is something (``has_news``), or when its time is over."""

    __slots__ = ("_answer", "_has_news")

    def __init__(self, deadline_ms: float, has_news: Callable[[], bool], answer: Callable[[], object]) -> None:
        super().__init__(deadline_ms)
        self._has_news = has_news
        self._answer = answer

    def try_complete(self) -> bool:
        """Part of DelayedOperation."""
        return self._has_news() and self.force_complete()

    def on_complete(self) -> None:
        """Part of DelayedOperation."""
        self._answer()
