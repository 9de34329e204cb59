"""Slice ``quotas``: scripts of client quotas from seeds.

A few users, client ids and addresses, and the defaults of each, are given quotas, with one thing wrong now and then; what filters
of any kind describe is looked at in between. At its end a script removes what it has set: defaults and addresses have no names
of the script's own.
"""

import random
from collections.abc import Iterable, Iterator
from typing import Any

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.wire_differential.cases.drawn import DrawnSteps
from tests.campaigns.wire_differential.script import Script, Step

_STEPS = 40
_USERS = ("@a", "@b", "@é ü/%", None)
_CLIENTS = ("@c", "@d", None)
_ADDRESSES = ("10.1.2.3", "::1", "localhost", None)
_OF_CLIENTS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
_OF_ADDRESSES = ("connection_creation_rate",)
_WRONG_VALUES = (0.0, -1.0, -0.5, 1.5, 0.25, 2.0**31, 2.0**63, 1e19, 1e300)
_WRONG_ADDRESSES = ("10.1.2", "10.1.2.3.4", "1.2.3.256", "no host", "::1::", "[::1]", "127.1", "no-such-host.invalid")
_EXACT, _DEFAULT, _SPECIFIED = range(3)
Entity = dict[str, str | None]


def scripts(seeds: Iterable[int]) -> Iterator[Script]:
    """One for each seed."""
    for seed in seeds:
        yield Script(f"quotas/{seed}", tuple(_Quotas(random.Random(seed)).steps()))


class _Quotas(DrawnSteps):
    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._touched: dict[tuple[tuple[str, str | None], ...], Entity] = {}

    def steps(self) -> Iterator[Step]:
        for _ in range(_STEPS):
            self._number += 1
            act = self._rng.choices((self._alter, self._alter_wrongly, self._describe, self._describe_wrongly), (8, 4, 6, 2))[0]
            yield act()
        yield self._described("all that is left", [], strict=False)
        removed = [(entity, [(key, None) for key in _keys_of(entity)]) for entity in self._touched.values()]
        yield self._altered("remove all", removed)
        yield self._described("nothing is left", [], strict=False)

    def _alter(self) -> Step:
        entities: dict[tuple[tuple[str, str | None], ...], Entity] = {}
        for _ in range(self._rng.randint(1, 3)):
            entity = self._entity()
            entities[tuple(sorted(entity.items(), key=str))] = entity
        entries = [(entity, self._ops(entity)) for entity in entities.values()]
        return self._altered("alter", entries, validate_only=self._rng.random() < 0.15)

    def _alter_wrongly(self) -> Step:
        entity = self._entity()
        ops = self._ops(entity)
        what = self._rng.randrange(8)
        if what == 0:
            ops = [*ops[1:], (ops[0][0], self._rng.choice(_WRONG_VALUES))]
        elif what == 1:
            ops = [*ops, (self._rng.choice(("no_such", "", *_OF_CLIENTS, *_OF_ADDRESSES)), 5.0)]
        elif what == 2:
            ops = [*ops, ops[0]]
        elif what == 3:
            entity = self._rng.choice(({}, {"user": ""}, {"client-id": ""}, {"ip": ""}, {"group": "g"}, {"": "g"}))
        elif what == 4:
            entity = {"ip": "10.1.2.3", self._rng.choice(("user", "client-id")): self._rng.choice(("@a", None))}
        elif what == 5:
            entity, ops = {"ip": self._rng.choice(_WRONG_ADDRESSES)}, [("connection_creation_rate", 7.0)]
        elif what == 6:
            ops = []
        entries = [(entity, ops)] * (2 if what == 7 else 1)
        # Beside one that is right.
        other = self._entity()
        if self._rng.random() < 0.4 and other != entity:
            entries.append((other, self._ops(other)))
        return self._altered(f"alter, wrong {what}", entries)

    def _describe(self) -> Step:
        named = self._entity() if self._rng.random() < 0.8 else {}
        components = [(kind, *self._match(name)) for kind, name in named.items()]
        return self._described("describe", components, strict=self._rng.random() < 0.5)

    def _describe_wrongly(self) -> Step:
        wrong: list[list[tuple[str, int, str | None]]] = [
            [("", _EXACT, "@a")],
            [("group", _EXACT, "@a")],
            [("user", _EXACT, None)],
            [("user", _DEFAULT, "@a")],
            [("user", _SPECIFIED, "@a")],
            [("user", _EXACT, "@a"), ("user", _DEFAULT, None)],
            [("user", _SPECIFIED, None), ("user", _SPECIFIED, None)],
            [("user", self._rng.choice((-1, 3, 100)), None)],
            [("ip", _SPECIFIED, None), ("client-id", _SPECIFIED, None)],
            [("ip", _DEFAULT, None), ("user", _EXACT, "@a")],
        ]
        return self._described("describe, wrong", self._rng.choice(wrong), strict=self._rng.random() < 0.5)

    def _entity(self) -> Entity:
        kinds = self._rng.choice((("user",), ("client-id",), ("user", "client-id"), ("client-id", "user"), ("ip",)))
        names = {"user": _USERS, "client-id": _CLIENTS, "ip": _ADDRESSES}
        return {kind: self._rng.choice(names[kind]) for kind in kinds}

    def _ops(self, entity: Entity) -> list[tuple[str, float | None]]:
        keys = _keys_of(entity)
        chosen = self._rng.sample(keys, self._rng.randint(1, len(keys)))
        return [(key, self._rng.choice((None, 1.0, 5.0, 1000.0, 2.0**31 - 1, 5.000_000_1))) for key in chosen]

    def _match(self, name: str | None) -> tuple[int, str | None]:
        if self._rng.random() < 0.3:
            return _SPECIFIED, None
        return (_DEFAULT, None) if name is None else (_EXACT, name)

    def _altered(
        self, what: str, entries: list[tuple[Entity, list[tuple[str, float | None]]]], *, validate_only: bool = False
    ) -> Step:
        for entity, _ in entries:
            self._touched[tuple(sorted(entity.items(), key=str))] = entity
        fields: dict[str, Any] = {
            "entries": [
                {
                    "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
                    "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops],
                }
                for entity, ops in entries
            ],
            "validate_only": validate_only,
        }
        return Step(self._label(what, "admin"), ApiKey.ALTER_CLIENT_QUOTAS, self._version(ApiKey.ALTER_CLIENT_QUOTAS), fields)

    def _described(self, what: str, components: list[tuple[str, int, str | None]], *, strict: bool) -> Step:
        fields = {
            "components": [{"entity_type": kind, "match_type": match, "match": name} for kind, match, name in components],
            "strict": strict,
        }
        version = self._version(ApiKey.DESCRIBE_CLIENT_QUOTAS)
        return Step(self._label(what, "admin"), ApiKey.DESCRIBE_CLIENT_QUOTAS, version, fields)


def _keys_of(entity: Entity) -> tuple[str, ...]:
    return _OF_ADDRESSES if "ip" in entity else _OF_CLIENTS
