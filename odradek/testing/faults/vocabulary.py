"""The keys of a rule and the checks of their values. One vocabulary for Python's keyword arguments, dicts and JSON.

A rule has conditions, and at most one action.

    when    api, client_id, group, transactional_id, topic, partition     a request that names all of these
            connections                                                   each new connection
            disk (append, sync); path, topic, partition                   an operation on a file of the broker's
            point; path, topic, partition                                 the append of a record of this kind (``disk``)
            nth, after, times, probability, seed                          which of the matches
            predicate                                                     of Python only: a function of the request
    what    error, delay_ms, drop, close, stall, throttle_ms, split, pause_ms, refuse, restart, power_loss

A rule without an action only observes.
"""

from __future__ import annotations

import errno
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypedDict

from odradek.controller.metadata.topic import (
    CONSUMER_OFFSETS_TOPIC,
    INTERNAL_TOPICS,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from odradek.testing.faults.request import named_by

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from odradek.testing.faults.request import Request

__tracebackhide__ = True


class BadRule(ValueError):
    """An invalid rule; the message names the key, its value and what is allowed."""


class FaultKeywords(TypedDict, total=False):
    """The keys of a rule. ``api`` and ``error`` are Kafka's names or numbers; ``api`` may be a list of these."""

    api: str | int | Sequence[str | int]
    client_id: str
    group: str
    transactional_id: str
    topic: str
    partition: int
    connections: bool
    nth: int
    after: int
    times: int
    probability: float
    seed: int
    predicate: Callable[[Request], bool]
    disk: str
    point: str
    path: str
    error: str | int
    delay_ms: int
    drop: bool
    close: str
    stall: bool
    throttle_ms: int
    split: int | Sequence[int]
    pause_ms: int
    refuse: bool
    restart: str
    power_loss: str


ACTIONS: Final = (
    "error",
    "delay_ms",
    "drop",
    "close",
    "stall",
    "throttle_ms",
    "split",
    "pause_ms",
    "refuse",
    "restart",
    "power_loss",
)
OF_REQUESTS: Final = ("api", "client_id", "group", "transactional_id", "topic", "partition", "predicate")
OF_FILES: Final = ("disk", "point")
_NOT_OF_FILES: Final = ("api", "client_id", "group", "transactional_id", "predicate", "connections")
_ACTIONS_OF_FILES: Final = ("error", "delay_ms", "restart", "power_loss")
MOMENTS: Final = ("before", "after")
DISK_MOMENTS: Final = (*MOMENTS, "torn")
OPERATIONS: Final = ("append", "sync")
# Kinds of records, in the order in which a transaction writes them; then those of the state of share partitions.
POINTS: Final = (
    "Empty",
    "Ongoing",
    "Records",
    "Group",
    "Offsets",
    "PendingOffsets",
    "PrepareCommit",
    "PrepareAbort",
    "Marker",
    "GroupMarker",
    "CompleteCommit",
    "CompleteAbort",
    "ShareSnapshot",
    "ShareUpdate",
)
_OF_GROUPS: Final = ("Group", "Offsets", "PendingOffsets", "GroupMarker")
_OF_CLIENTS: Final = ("Records", "Marker")
_OF_SHARES: Final = ("ShareSnapshot", "ShareUpdate")
_TOPIC_OF_POINT: Final = {
    **{point: TRANSACTION_STATE_TOPIC for point in POINTS if point not in _OF_CLIENTS},
    **dict.fromkeys(_OF_GROUPS, CONSUMER_OFFSETS_TOPIC),
    **dict.fromkeys(_OF_SHARES, SHARE_GROUP_STATE_TOPIC),
}
_ERRNOS: Final = ("EIO", "ENOSPC", "EROFS", "EDQUOT")
_APIS: Final = {api_key.name.replace("_", "").lower(): api_key for api_key in ApiKey}


def checked(given: Mapping[str, object], where: str = "") -> FaultKeywords:
    """Return the checked rule, with Kafka's numbers for names. Raises BadRule, whose message begins with ``where``."""
    words: dict[str, object] = {}
    is_of_files = any(key in given for key in OF_FILES)
    for key, value in given.items():
        check = _CHECKS_OF_FILES.get(key) if is_of_files else None
        check = check or _CHECKS.get(key)
        if check is None:
            nearest = get_close_matches(key, _CHECKS, n=1)
            meant = f"did you mean {nearest[0]}? " if nearest else ""
            raise BadRule(f"{where}{key}: unknown key; {meant}allowed are {', '.join(_CHECKS)}")
        try:
            words[key] = check(value)
        except BadRule as error:
            raise BadRule(f"{where}{key}: {value!r} is not allowed; allowed {error}") from None
    _check_together(words, where)
    return words  # type: ignore[return-value]  # each has been checked


def _check_together(words: Mapping[str, object], where: str) -> None:
    actions = [key for key in ACTIONS if key in words]
    if len(actions) > 1:
        raise BadRule(f"{where}{' and '.join(actions)}: a rule has only one action; allowed is one of {', '.join(ACTIONS)}")
    if any(key in words for key in OF_FILES):
        _check_of_files(words, where)
    elif "path" in words:
        raise BadRule(f"{where}path: {words['path']!r} is not allowed alone; allowed is a path with disk or point")
    if "connections" in words or "refuse" in words:
        wrong = [key for key in words if key in OF_REQUESTS] + [key for key in actions if key != "refuse"]
        if wrong:
            raise BadRule(
                f"{where}{wrong[0]}: {words[wrong[0]]!r} is not allowed for connections; allowed are refuse, nth, after, times, "
                "probability and seed"
            )
    if "seed" in words and "probability" not in words:
        raise BadRule(f"{where}seed: {words['seed']!r} is not allowed alone; allowed is a seed with a probability")
    others = [key for key in ("after", "times", "probability") if key in words]
    if "nth" in words and others:
        raise BadRule(f"{where}nth: {words['nth']!r} is not allowed with {others[0]}; allowed is nth alone, or these")
    if "partition" in words and "topic" not in words:
        raise BadRule(f"{where}partition: {words['partition']!r} is not allowed alone; allowed is a partition with a topic")
    for api_key in words.get("api", ()):  # type: ignore[attr-defined]  # it has been checked
        _check_can_fire(api_key, words, where)


def _check_can_fire(api_key: ApiKey, words: Mapping[str, object], where: str) -> None:
    """Raise BadRule if the rule could never fire at requests of this API, or would have no effect."""
    named = named_by(api_key)
    wrong = next((key for key in ("group", "transactional_id", "topic") if key in words and key not in named), None)
    if wrong is not None:
        allowed = ", ".join(sorted(named)) or "neither group, transactional_id nor topic"
        raise BadRule(
            f"{where}{wrong}: {words[wrong]!r} is not allowed with {_title(api_key)}: its requests have none, so the rule would "
            f"never fire; allowed with it is {allowed}"
        )
    if "throttle_ms" in words and "throttle_time_ms" not in messages(api_key).response._fields:
        raise BadRule(
            f"{where}throttle_ms: {words['throttle_ms']!r} is not allowed with {_title(api_key)}: its responses have no "
            "throttle time; allowed is delay_ms"
        )


def _check_of_files(words: Mapping[str, object], where: str) -> None:
    wrong = [key for key in words if key in _NOT_OF_FILES or (key in ACTIONS and key not in _ACTIONS_OF_FILES)]
    if "disk" in words and "point" in words:
        wrong.append("disk")
    if words.get("disk") == "sync":
        wrong += [key for key in ("restart", "power_loss") if words.get(key) == "torn"]
    if wrong:
        raise BadRule(
            f"{where}{wrong[0]}: {words[wrong[0]]!r} is not allowed here; allowed with disk or point are topic, partition, path, "
            f"nth, after, times, probability, seed, and {', '.join(_ACTIONS_OF_FILES)} (torn for appends)"
        )
    if "point" in words and "topic" in words:
        _check_point_of(str(words["point"]), str(words["topic"]), where)


def _check_point_of(point: str, topic: str, where: str) -> None:
    """Raise BadRule for a kind of record that the topic never has."""
    coordinators = _TOPIC_OF_POINT.get(point)
    if (coordinators is None and topic not in INTERNAL_TOPICS) or coordinators == topic:
        return
    allowed = f"a topic of clients, for {point}" if coordinators is None else f"{coordinators}, for {point}, or no topic"
    raise BadRule(
        f"{where}topic: {topic!r} is not allowed: it has no such records, so the rule would never fire; allowed is {allowed}"
    )


def _api(value: object) -> tuple[ApiKey, ...]:
    if isinstance(value, list | tuple) and value:
        return tuple(api for each in value for api in _api(each))
    found = None
    if isinstance(value, str):
        found = _APIS.get(value.replace("_", "").lower())
    elif isinstance(value, int) and not isinstance(value, bool) and value in list(ApiKey):
        found = ApiKey(value)
    if found is None:
        raise BadRule(
            f"are names and numbers of APIs, such as {', '.join(_title(api) for api in list(ApiKey)[:6])}, and lists of them"
        )
    return (found,)


def _title(api_key: ApiKey) -> str:
    return "".join(part.capitalize() for part in api_key.name.split("_"))


def _error(value: object) -> ErrorCode:
    if isinstance(value, str) and value in ErrorCode.__members__:
        return ErrorCode[value]
    if isinstance(value, int) and not isinstance(value, bool) and value in list(ErrorCode):
        return ErrorCode(value)
    raise BadRule("are names and numbers of Kafka's error codes, such as NOT_LEADER_OR_FOLLOWER and 6")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise BadRule("is a string")
    return value


def _true(value: object) -> bool:
    if value is not True:
        raise BadRule("is true")
    return True


def _from(least: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise BadRule(f"is a whole number from {least} on")
        return value

    return check


def _probability(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 1:
        raise BadRule("is a number above 0, up to 1")
    return float(value)


def _moment(value: object) -> str:
    if value not in MOMENTS:
        raise BadRule("are before and after: before or after the request is carried out")
    return str(value)


def _one_of(names: tuple[str, ...]) -> Callable[[object], str]:
    def check(value: object) -> str:
        if value not in names:
            raise BadRule(f"are {', '.join(names)}")
        return str(value)

    return check


def _errno(value: object) -> int:
    if value not in _ERRNOS:
        raise BadRule(f"are {', '.join(_ERRNOS)}")
    number: int = getattr(errno, str(value))
    return number


def _split(value: object) -> int | tuple[int, ...]:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if isinstance(value, list | tuple) and value and all(type(each) is int and each > 0 for each in value):
        return tuple(sorted(value))
    raise BadRule("are a size of pieces from 1 on, and a list of positions at which to split")


def _predicate(value: object) -> Callable[[Request], bool]:
    if not callable(value):
        raise BadRule("is a function that takes a request, in Python only")
    return value


_CHECKS: Final[dict[str, Callable[[object], object]]] = {
    "api": _api,
    "client_id": _text,
    "group": _text,
    "transactional_id": _text,
    "topic": _text,
    "partition": _from(0),
    "connections": _true,
    "nth": _from(1),
    "after": _from(0),
    "times": _from(1),
    "probability": _probability,
    "seed": _from(0),
    "predicate": _predicate,
    "disk": _one_of(OPERATIONS),
    "point": _one_of(POINTS),
    "path": _text,
    "error": _error,
    "delay_ms": _from(0),
    "drop": _true,
    "close": _moment,
    "stall": _true,
    "throttle_ms": _from(0),
    "split": _split,
    "pause_ms": _from(0),
    "refuse": _true,
    "restart": _moment,
    "power_loss": _moment,
}
_CHECKS_OF_FILES: Final[dict[str, Callable[[object], object]]] = {
    "error": _errno,
    "restart": _one_of(DISK_MOMENTS),
    "power_loss": _one_of(DISK_MOMENTS),
}
