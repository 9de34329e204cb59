"""The watch over a broker while somebody looks at the page: requests and errors by client, rates, and the timeline.

It is a gate before all others, so it sees what clients send and receive. Without a viewer there is no gate, and no cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from odradek.testing.listening import ListeningBroker

# The client id of the page's own connections. The watch leaves out their requests.
PAGE_CLIENT_ID: Final = "odradek-page"


class Watch:
    """The watch over one broker, across its restarts. Loop thread only.

    Call ``enter`` when a page is opened, and ``leave`` when it is closed. ``enter_requests`` and ``leave_requests`` do the same
    for the view of requests, which needs a timeline.
    """

    def __init__(self, broker: ListeningBroker) -> None:
        raise NotImplementedError

    @property
    def changes(self) -> int:
        """The number of requests that may have changed something, since the watch was made. Equal numbers: nothing new."""
        raise NotImplementedError

    def enter(self) -> None:
        """Count one more viewer. The first one starts the watch."""
        raise NotImplementedError

    def leave(self) -> None:
        """Count one viewer less. The last one stops the watch; its counts stay."""
        raise NotImplementedError

    def enter_requests(self) -> None:
        """Count one more viewer of requests. The first one starts the timeline."""
        raise NotImplementedError

    def leave_requests(self) -> None:
        """Count one viewer of requests less. The last one stops the timeline."""
        raise NotImplementedError
