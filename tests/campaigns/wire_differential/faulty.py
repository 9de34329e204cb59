"""Faults in odradek's answers that the campaign must find."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from odradek.common.context import CLOSE_CONNECTION, NO_RESPONSE
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.testing import Broker
from tests.campaigns.planted import SpoiltAnswers
from tests.campaigns.wire_differential.driver import Driver
from tests.campaigns.wire_differential.settings import SETTINGS


class Fault(NamedTuple):
    """``spoil`` makes an answer another one; ``version`` of the script's request finds it, as a difference in ``field``."""

    api: ApiKey
    script: str
    field: str
    spoil: Callable[[Any], Any]

    @property
    def answer(self) -> str:
        return f"{self.api.name} {self.field}"


def _other_code(answer: Any) -> Any:
    is_unknown = answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    return answer._replace(error_code=ErrorCode.ILLEGAL_GENERATION) if is_unknown else answer


def _silent(answer: Any) -> Any:
    """For a group that is deleted; the case after it gets its error."""
    return answer if answer.results[0].error_code else NO_RESPONSE


def _newer_target(answer: Any) -> Any:
    groups = [each._replace(assignment_epoch=each.assignment_epoch + 1) for each in answer.groups]
    return answer._replace(groups=groups)


def _other(field: str, change: Callable[[int], int]) -> Callable[[Any], Any]:
    return lambda answer: answer._replace(**{field: change(getattr(answer, field))})


def _valid(api: ApiKey, version: int, field: str, spoil: Callable[[Any], Any]) -> Fault:
    return Fault(api, f"valid/{api.name}/v{version}", field, spoil)


FAULTS = {
    "code": Fault(ApiKey.HEARTBEAT, "unknown/HEARTBEAT/v4", "error_code", _other_code),
    "field": _valid(ApiKey.METADATA, 13, "controller_id", _other("controller_id", lambda number: number + 1)),
    "epoch": _valid(ApiKey.INIT_PRODUCER_ID, 3, "producer_epoch", _other("producer_epoch", lambda epoch: epoch + 1)),
    "target": Fault(ApiKey.CONSUMER_GROUP_DESCRIBE, "consumers/revocation", "groups.assignment_epoch", _newer_target),
    "missing": _valid(ApiKey.LIST_OFFSETS, 11, "topics[]", lambda answer: answer._replace(topics=())),
    "closed": _valid(ApiKey.LIST_GROUPS, 5, "connection", lambda _answer: CLOSE_CONNECTION),
    "subscription": _valid(
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, "subscription_id", _other("subscription_id", lambda number: number ^ 1)
    ),
    "silent": _valid(ApiKey.DELETE_GROUPS, 3, "connection", _silent),
}


@contextmanager
def faulty(name: str) -> Iterator[Driver]:
    """A driver of odradek with one of ``FAULTS``."""
    with Broker(configs=SETTINGS) as broker:
        SpoiltAnswers(FAULTS[name].api, FAULTS[name].spoil).stand_in(broker)
        yield Driver(broker.bootstrap_servers)
