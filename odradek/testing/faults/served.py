"""Rules for ``odradek serve``, from a file of JSON: a list of rules in their declarative form."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, NoReturn

from odradek.storage.filesystem import RealFileSystem
from odradek.testing.faults.faults import Faults, checked_rules
from odradek.testing.faults.vocabulary import BadRule
from odradek.testing.severed import SeverableFileSystem

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.broker.network.gate import Gate
    from odradek.broker.start.server import Broker as BrokerCore
    from odradek.testing.faults.vocabulary import Words
    from odradek.testing.severed import Watch


def read_rules(path: Path) -> list[Words]:
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


class _Served:
    """A broker with a process of its own."""

    def __init__(self, core: BrokerCore, files: SeverableFileSystem) -> None:
        self._core = core
        self._files = files

    def add_gate(self, gate: Gate) -> None:
        self._core.dispatcher.add_gate(gate)

    def remove_gate(self, gate: Gate) -> None:
        self._core.dispatcher.remove_gate(gate)

    def watch_disk(self, watch: Watch | None) -> None:
        self._files.watch = watch

    def ensure_loses_power(self) -> None:
        """Do nothing: ``read_rules`` refuses such rules."""

    def restart_now(self, *, lose_power: bool = False) -> NoReturn:  # noqa: ARG002  ``read_rules`` refuses power_loss
        """Kill this process. A supervisor may start it again."""
        os.kill(os.getpid(), signal.SIGKILL)
        raise SystemExit


def watched_files() -> SeverableFileSystem:
    """Return the machine's files, for ``install``."""
    return SeverableFileSystem(RealFileSystem())


def install(core: BrokerCore, files: SeverableFileSystem, rules: list[Words]) -> Faults:
    """Apply these rules to a broker on ``files``. Call it before the start, and ``let_go`` of the result before the stop."""
    faults = Faults(_Served(core, files))
    faults.serve(core)
    for words in rules:
        faults.add_checked(words)
    return faults
