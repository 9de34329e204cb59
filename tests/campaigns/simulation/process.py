"""A simulated client: requests and their answers, which may come too late, and stalls.

``turn`` numbers a client's activities; answers that belong to an earlier turn are ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.protocol.api_keys import ApiKey
    from tests.campaigns.simulation.group_world import GroupWorld
    from tests.campaigns.simulation.plan import GroupPlan


class Process:
    """One process of one member of ``group``."""

    def __init__(self, world: GroupWorld, group: GroupPlan, client_id: str, instance_id: str | None) -> None:
        self.group = group
        self.client_id = client_id
        self.instance_id = instance_id
        self.turn = 0
        self._world: Any = world
        self._is_stalled = False
        self._inbox: list[Callable[[], None]] = []

    def stall(self, duration_ms: int) -> None:
        """Do nothing for a while; responses wait until then."""
        if not self._is_stalled:
            self._is_stalled = True
            self._world.later(duration_ms, self.go_on)

    def go_on(self) -> None:
        """End the stall, if there is one."""
        self._is_stalled = False
        inbox, self._inbox = self._inbox, []
        for step in inbox:
            step()

    def _when_current(self, step: Callable[..., None]) -> Callable[..., None]:
        """``step``, unless the process is in another turn by then; delayed while it is stalled."""
        turn = self.turn

        def run(*arguments: Any) -> None:
            if self.turn != turn:
                return
            if self._is_stalled:
                self._inbox.append(lambda: run(*arguments))
            else:
                step(*arguments)

        return run

    def _soon(self, delay_ms: float, step: Callable[[], None]) -> None:
        self._world.later(delay_ms, self._when_current(step))

    def _ask(self, api_key: ApiKey, version: int, request: Any, answered: Callable[[Any], None]) -> None:
        self._world.ask(self, api_key, version, lambda: request, self._when_current(answered))
