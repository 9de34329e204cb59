"""The rules of one broker across restarts, and their firings. Use them on the broker's loop only.

``odradek serve`` reads its rules from a file of JSON: a list of rules in their declarative form.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Never, NoReturn, Protocol, Unpack

from odradek.storage.filesystem import RealFileSystem
from odradek.testing.faults.disk import FaultyDisk
from odradek.testing.faults.fault import Fault, Fired
from odradek.testing.faults.gate import FaultGate
from odradek.testing.faults.vocabulary import BadRule, FaultKeywords, checked
from odradek.testing.misuse import CompletedCall, ensure_by_name
from odradek.testing.severed import SeverableFileSystem

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.broker.network.connection_registry import OpenConnection
    from odradek.broker.network.gate import Gate
    from odradek.broker.start.server import Broker as BrokerCore
    from odradek.testing.faults.request import Request
    from odradek.testing.severed import Watch

__tracebackhide__ = True

_CONNECTION: Final = "connection"


class Host(Protocol):
    """The broker that has the faults."""

    def add_gate(self, gate: Gate) -> None:
        """Have ``gate`` asked about each request."""

    def remove_gate(self, gate: Gate) -> None:
        """Remove ``gate``."""

    def watch_disk(self, watch: Watch | None) -> None:
        """Route each operation of the broker's files through ``watch``; None removes it."""

    def restart_now(self, *, lose_power: bool = False) -> None:
        """End as kill -9 or a loss of power does, and start again. Raises TypeError for a disk that loses nothing."""

    def ensure_loses_power(self) -> None:
        """Raise TypeError for a disk that loses nothing."""


class Faults:
    """The rules of a broker. The first rule that fires with an action takes the request; later rules do not see it."""

    def __init__(self, host: Host) -> None:
        self.fired: list[Fired] = []
        self._host = host
        self._rules: list[Fault] = []
        self._core: BrokerCore | None = None
        self._gate = FaultGate(self)
        self._has_gate = False
        self._disk = FaultyDisk(self)

    @property
    def core(self) -> BrokerCore:
        """Return the broker's running process. Raises RuntimeError if there is none."""
        if self._core is None:
            raise RuntimeError("the broker is not running")
        return self._core

    @property
    def rules(self) -> tuple[Fault, ...]:
        """Return the active rules, in the order in which they are asked."""
        return tuple(self._rules)

    def add(self, /, *wrong: Never, **words: Unpack[FaultKeywords]) -> Fault:
        """Add a rule: see ``vocabulary``. Raises BadRule, and TypeError for positional arguments."""
        ensure_by_name("faults.add", 'faults.add(api="Produce", error="NOT_ENOUGH_REPLICAS")', wrong)
        return self.add_checked(checked(words))

    def load(self, rules: Iterable[Mapping[str, object]]) -> list[Fault]:
        """Add rules in their declarative form. If it raises BadRule, none was added."""
        return [self.add_checked(words) for words in checked_rules(rules)]

    def add_checked(self, words: FaultKeywords) -> Fault:
        """Add a rule that ``checked`` has passed."""
        if "power_loss" in words:
            self._host.ensure_loses_power()
        fault = Fault(words, self._remove)
        self._rules.append(fault)
        self._watch()
        return fault

    def clear(self) -> CompletedCall:
        """Remove all rules. Requests that they hold go on; ``fired`` is kept."""
        for fault in self.rules:
            fault.remove()
        return CompletedCall()

    def serve(self, core: BrokerCore | None) -> None:
        """Use ``core`` as the broker's process from now on; None for no process. Held requests of the old one are dropped."""
        self._gate.forget()
        self._core = core
        self._watch()

    def let_go(self) -> None:
        """Release all held requests: the broker is about to stop."""
        self._gate.let_go(None)

    def restart_now(self, *, lose_power: bool = False) -> None:
        """End the broker as kill -9 does, or its machine as a loss of power does, and start it again."""
        self._host.restart_now(lose_power=lose_power)

    def firing_at(self, request: Request) -> Fault | None:
        """Return the first rule with an action that fires at a request. Firing rules before it are recorded, too."""
        for fault in self._rules:
            if fault.subject != "requests" or not fault.fires_at(request):
                continue
            self.note(fault, _fired(fault, request))
            if fault.action is not None:
                return fault
        return None

    def _remove(self, fault: Fault) -> None:
        with suppress(ValueError):
            self._rules.remove(fault)
            self._watch()
        self._gate.let_go(fault)

    def _watch(self) -> None:
        """Hook into the broker where there are rules, and unhook elsewhere."""
        subjects = {each.subject for each in self._rules}
        if ("requests" in subjects) is not self._has_gate:
            self._has_gate = not self._has_gate
            (self._host.add_gate if self._has_gate else self._host.remove_gate)(self._gate)
        self._host.watch_disk(self._disk if "files" in subjects else None)
        if self._core is None:
            return
        if "files" in subjects:
            self._disk.serve()
        if self._core.connections is not None:
            self._core.connections.refuses = self._refuses if "connections" in subjects else None

    def _refuses(self, connection: OpenConnection) -> bool:
        del connection
        for fault in self._rules:
            if fault.subject == "connections" and fault.draws():
                self.note(fault, Fired(str(fault), fault.action, _CONNECTION, None, None, None, ()))
                if fault.action is not None:
                    return True
        return False

    def note(self, fault: Fault, fired: Fired) -> None:
        """Record that a rule has fired."""
        self.fired.append(fired)
        fault.note(fired)


def checked_rules(rules: Iterable[object], where: str = "") -> list[FaultKeywords]:
    """Check rules in their declarative form. Raises BadRule, which says which rule it is."""
    if isinstance(rules, str | Mapping) or not isinstance(rules, Iterable):
        raise BadRule(f"{where}{rules!r} is not allowed; allowed is a list of rules, as returned by json.load")
    words = []
    for number, each in enumerate(rules):
        if not isinstance(each, dict):
            raise BadRule(f"{where}rule {number}: {each!r} is not allowed; allowed is an object of keys and values")
        words.append(checked(each, f"{where}rule {number}: "))
    return words


def _fired(fault: Fault, request: Request) -> Fired:
    def first(names: list[str]) -> Any:
        return names[0] if names else None

    api = "".join(part.capitalize() for part in request.api_key.name.split("_"))
    return Fired(
        str(fault),
        fault.action,
        api,
        request.client_id,
        first(request.groups),
        first(request.transactional_ids),
        tuple(request.topics),
    )


def read_rules(path: Path) -> list[FaultKeywords]:
    """Read the rules of a file. Raises OSError, and BadRule, which names the file, the key, its value and what is allowed."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise BadRule(f"{path} is not UTF-8 text") from None
    except ValueError as error:
        raise BadRule(f"{path} is not JSON: {error}") from None
    if not isinstance(found, list):
        raise BadRule(f"{path}: {found!r} is not allowed; allowed is a list of rules")
    rules = checked_rules(found, f"{path}: ")
    for number, words in enumerate(rules):
        if "power_loss" in words:
            raise BadRule(f"{path}: rule {number}: power_loss: {words['power_loss']!r} is not allowed in a process; use restart")
    return rules


class ServedFaults:
    """The faults of a broker with a process of its own, on ``files``.

    Make it before the broker starts, with ``gates``. Then call ``faults.serve``, and ``faults.let_go`` before the stop.
    """

    def __init__(self, files: SeverableFileSystem, rules: list[FaultKeywords]) -> None:
        self.gates: list[Gate] = []
        self._files = files
        self.faults = Faults(self)
        for words in rules:
            self.faults.add_checked(words)

    def add_gate(self, gate: Gate) -> None:
        """Have ``gate`` asked about each request. All rules are there before the start."""
        self.gates.append(gate)

    def remove_gate(self, gate: Gate) -> None:
        """Remove ``gate``."""
        self.faults.core.dispatcher.remove_gate(gate)

    def watch_disk(self, watch: Watch | None) -> None:
        """Route all appends and syncs through ``watch``."""
        self._files.watch = watch

    def ensure_loses_power(self) -> None:
        """Do nothing: ``read_rules`` refuses such rules."""

    def restart_now(self, *, lose_power: bool = False) -> NoReturn:  # noqa: ARG002  ``read_rules`` refuses power_loss
        """Kill this process. A supervisor may start it again."""
        os.kill(os.getpid(), signal.SIGKILL)
        raise SystemExit


def watched_files() -> SeverableFileSystem:
    """Return the machine's files, for ``ServedFaults``."""
    return SeverableFileSystem(RealFileSystem())
