"""Faults of the product that campaigns have to find, each planted alone: in this process, or in that of a broker.

    python -m tests.campaigns.planted MODULE FAULT EVERY serve ...

is ``odradek serve``, interpreted, with a fault of ``MODULE.FAULTS``, in one of so many calls where it looks at ``is_due``.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.__main__ import start
from odradek.build import is_compiled
from odradek.protocol.broker_codecs import response_encoder
from odradek.protocol.client_codecs import response_decoder
from tests.broker_process import BrokerProcess
from tests.campaigns.simulation import runner
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from odradek.common.context import RequestContext
    from odradek.protocol.api_keys import ApiKey
    from odradek.testing import ThreadedBroker
    from tests.campaigns.simulation.runner import Run, Simulation


class Change(NamedTuple):
    """``value`` takes the place of ``owner``'s ``name``."""

    owner: object
    name: str
    value: object


class Fault(NamedTuple):
    """``finds`` are the invariants by which it is found, ``first`` the seed with which the search begins.

    The seed is not far before one that finds it. A ``rare`` fault is left to the long form.
    """

    changes: tuple[Change, ...]
    finds: frozenset[str]
    first: int
    is_rare: bool


def around(owner: object, name: str, function: Callable[..., Any]) -> Change:
    """``function`` takes the place of ``owner``'s ``name``, and is given that, before the arguments of the call."""
    original = getattr(owner, name)
    return Change(owner, name, lambda *arguments, **named: function(original, *arguments, **named))


@contextmanager
def in_place(*changes: Change) -> Iterator[None]:
    """Within, the changes are made. odradek must not be compiled: compiled code does not look up its own names."""
    with ExitStack() as stack:
        for owner, name, value in changes:
            own = vars(owner)
            # An inherited attribute is removed, and found again in the base class.
            back = (setattr, owner, name, own[name]) if name in own else (delattr, owner, name)
            assert hasattr(owner, name)
            setattr(owner, name, value)
            stack.callback(*back)
        yield


class Faults(dict[str, Fault]):
    """Faults by name. A campaign that draws histories runs ``run`` from seeds, in the short form at most ``most`` of them."""

    def __init__(self, run: Run | None = None, most: int = 1) -> None:
        super().__init__()
        self.run = run
        self.most = most

    def put(
        self, name: str, owner: object, attribute: str, value: object, *finds: str, first: int = 0, is_rare: bool = False
    ) -> None:
        """A fault of one change."""
        self.add(name, Change(owner, attribute, value), finds=finds, first=first, is_rare=is_rare)

    def wrap(
        self,
        name: str,
        owner: object,
        attribute: str,
        function: Callable[..., Any],
        *finds: str,
        first: int = 0,
        is_rare: bool = False,
    ) -> None:
        """A fault of one change: ``around``."""
        self.add(name, around(owner, attribute, function), finds=finds, first=first, is_rare=is_rare)

    def add(self, name: str, *changes: Change, finds: tuple[str, ...] = (), first: int = 0, is_rare: bool = False) -> None:
        """A fault of several changes."""
        self[name] = Fault(changes, frozenset(finds), first, is_rare)

    def around(
        self, owner: object, attribute: str, *finds: str, first: int = 0, is_rare: bool = False
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate a function that is a fault as in ``around``, and has its name. ``_`` stands for ``-`` or a space."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            change = around(owner, attribute, function)
            self.add(function.__name__.strip("_"), change, finds=finds, first=first, is_rare=is_rare)
            return function

        return decorate

    def planted(self, name: str) -> AbstractContextManager[None]:
        """The fault is there."""
        return in_place(*self[name].changes)

    @property
    def soon(self) -> list[str]:
        """Those that the short form plants."""
        return [name for name, fault in self.items() if not fault.is_rare]

    def search(self, name: str, most: int) -> tuple[int | None, Exception | None]:
        """The first seed, of so many, that finds what is planted, and what it finds."""
        if self.run is None:
            raise AssertionError("no histories")
        first = self[name].first
        with self.planted(name):
            for seed in range(first, first + most):
                error = self.run(seed)[1]
                if error is not None:
                    return seed, error
        return None, None

    def is_found_by(self, name: str, error: Exception | None) -> bool:
        """True if the fault breaks that."""
        return isinstance(error, Violation) and error.invariant in self[name].finds

    def search_all(self, most: int) -> int:
        """Search for all, and print what is found; how many are not."""
        missed = 0
        for name in self:
            seed, error = self.search(name, most)
            is_found = self.is_found_by(name, error)
            missed += not is_found
            told = f"found by seed {seed}: {error}" if is_found else f"MISSED: {error!r}"
            print(f"{name.replace('_', ' ')}: {told[:160]}", flush=True)
        print(f"{len(self)} faults planted, {missed} missed")
        return missed


def main(simulation: Simulation, faults: Faults, about: str, arguments: list[str] | None = None) -> int:
    """``runner.main``, with the option to plant ``faults``. 1 if a history fails, or a fault is not found."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--mutations", type=int, default=0, help="plant each fault, and search so many histories for it")
    chosen, others = parser.parse_known_args(arguments)
    whole = f"{about.partition(chr(10))[0]} --mutations N plants each fault, and searches N histories for it."
    failed = runner.main(simulation, whole, others)
    missed = 0
    if chosen.mutations and is_compiled():
        # C calls C: what takes a function's place in its module is not called.
        print("no fault was planted, as odradek is compiled here")
    elif chosen.mutations:
        missed = faults.search_all(chosen.mutations)
    return int(failed or missed > 0)


# ------------------------------------------------------------------------------------------------- in the answers of a broker


class SpoiltAnswers:
    """Changes the answers to one API: a gate of a broker in process, or at work in a proxy."""

    def __init__(self, api: ApiKey, change: Callable[[Any], Any]) -> None:
        self._api = api
        self._change = change

    def admit(self, context: RequestContext, request: Any) -> None:
        """Let it pass."""

    def release(self, context: RequestContext, response: Any) -> Any:
        return self._change(response) if context.api_key is self._api else response

    def stand_in(self, broker: ThreadedBroker) -> None:
        """Change its answers from now on."""
        broker._thread.broker.add_gate(self)

    def in_frame(self, api: ApiKey, version: int, frame: bytes) -> bytes:
        """The frame of an answer, with its length, as a proxy is to pass it on."""
        if api is not self._api:
            return frame
        response = self._change(response_decoder(api, version)(frame[4:]))
        return b"".join(response_encoder(api, version)(int.from_bytes(frame[4:8]), response))


# ------------------------------------------------------------------------------------------------- in a broker's own process


class FaultyBroker(BrokerProcess):
    """A broker with the fault of this name in ``module``, in every so many requests."""

    def use(self, module: str, fault: str, every: int = 1) -> FaultyBroker:
        self.program = program(module, fault, every)
        return self


def program(module: str, fault: str, every: int = 1) -> tuple[str, ...]:
    """The program of such a broker."""
    return ("-m", __name__, module, fault, str(every))


_every = 1
_calls: Counter[str] = Counter()


def is_due(name: str = "") -> bool:
    """True if this call, one of every so many, is to go wrong."""
    _calls[name] += 1
    return _calls[name] % _every == 0


def plant(module: str, fault: str, every: int = 1) -> None:
    """Put a fault into this process."""
    global _every  # noqa: PLW0603  one process has one fault
    _every = every
    for change in import_module(module).FAULTS[fault].changes:
        setattr(change.owner, change.name, change.value)


def _serve() -> None:
    module, fault, every = sys.argv[1:4]
    del sys.argv[1:4]
    plant(module, fault, int(every))
    start()


if __name__ == "__main__":
    # As the module that MODULE imports.
    import_module("tests.campaigns.planted")._serve()
