"""What is sent, as data: scripts of steps.

A string in a step's fields that begins with ``@`` is a name of the script's own: ``@t`` becomes ``wd-SCRIPT-RUN-t``, so no two
scripts, nor two runs of one, share a topic, a group or a transactional id. ``Ref`` is a value of an earlier answer.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from odradek.protocol.api_keys import ApiKey


@dataclass(frozen=True, slots=True)
class Ref:
    """What a step has bound as ``name``; ``plus`` is added to a number. Without such an answer it is ``default``."""

    name: str
    default: Any = None
    plus: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """A record batch: ``count`` records, and what ``build_batch`` takes; values may be ``Ref``. ``patch`` overwrites bytes.

    ``patch`` has pairs of a position and bytes. With ``sealed`` the CRC is computed again afterwards.
    """

    count: int = 1
    fields: Mapping[str, Any] = field(default_factory=dict)
    patch: tuple[tuple[int, bytes], ...] = ()
    sealed: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """One request.

    Args:
        label: tells the cases of one script apart; empty for a step that prepares and whose answer is not compared.
        fields: of the request's body.
        body: what stands in the place of ``fields``, byte by byte. ``frame`` stands in the place of all of it, length included.
        bind: names for values of the answer, by path: ``{"epoch": "producer_epoch"}``.
        connection: which of the script's connections it goes over.
        parks: whether the answer may have to wait for other requests.
        until: (path, values): the step is repeated until the answer has one of these there.
    """

    label: str
    api: ApiKey | int
    version: int
    fields: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    frame: bytes | None = None
    bind: Mapping[str, str] = field(default_factory=dict)
    connection: str = "a"
    parks: bool = False
    until: tuple[str, tuple[Any, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """Steps that share their names; ``name`` is ``SLICE/API/vVERSION`` or ``SLICE/SEED``."""

    name: str
    steps: tuple[Step, ...]

    @property
    def slice(self) -> str:
        """The kind of script."""
        return self.name.partition("/")[0]

    @property
    def cases(self) -> int:
        """How many answers are compared."""
        return sum(1 for step in self.steps if step.label)

    def digest(self) -> str:
        """Changes with anything that is sent."""
        return hashlib.sha256(repr(self.steps).encode()).hexdigest()[:12]
