"""``python -m tests.campaigns.wire_differential.faulty FAULT serve ...``: the ``odradek`` command, with a faulty handler."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from odradek.broker.context import CLOSE_CONNECTION, NO_RESPONSE, Reply
from odradek.cli.main import main
from odradek.protocol.errors import ErrorCode
from tests.broker_process import BrokerProcess
from tests.campaigns.wire_differential.settings import SETTINGS


def _other_code(answer: Any) -> Any:
    is_unknown = answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    return answer._replace(error_code=ErrorCode.ILLEGAL_GENERATION) if is_unknown else answer


def _silent(answer: Any) -> Any:
    """For a group that is deleted; the case after it gets its error."""
    return answer if answer.results[0].error_code else NO_RESPONSE


def _newer_target(answer: Any) -> Any:
    groups = [each._replace(assignment_epoch=each.assignment_epoch + 1) for each in answer.groups]
    return answer._replace(groups=groups)


@dataclass(frozen=True, slots=True)
class Fault:
    """``spoil`` makes a handler's answer another one; ``script`` is one that finds it, as a difference in ``answer``."""

    handler: str
    spoil: Callable[[Any], Any]
    script: str
    answer: str


FAULTS = {
    "code": Fault("heartbeat", _other_code, "unknown/HEARTBEAT/v4", "HEARTBEAT error_code"),
    "field": Fault(
        "metadata",
        lambda answer: answer._replace(controller_id=answer.controller_id + 1),
        "valid/METADATA/v13",
        "METADATA controller_id",
    ),
    "epoch": Fault(
        "init_producer_id",
        lambda answer: answer._replace(producer_epoch=answer.producer_epoch + 1),
        "valid/INIT_PRODUCER_ID/v3",
        "INIT_PRODUCER_ID producer_epoch",
    ),
    "target": Fault(
        "consumer_group_describe", _newer_target, "consumers/revocation", "CONSUMER_GROUP_DESCRIBE groups.assignment_epoch"
    ),
    "missing": Fault(
        "list_offsets", lambda answer: answer._replace(topics=()), "valid/LIST_OFFSETS/v11", "LIST_OFFSETS topics[]"
    ),
    "closed": Fault("list_groups", lambda _answer: CLOSE_CONNECTION, "valid/LIST_GROUPS/v5", "LIST_GROUPS connection"),
    "subscription": Fault(
        "get_telemetry_subscriptions",
        lambda answer: answer._replace(subscription_id=answer.subscription_id ^ 1),
        "valid/GET_TELEMETRY_SUBSCRIPTIONS/v0",
        "GET_TELEMETRY_SUBSCRIPTIONS subscription_id",
    ),
    "silent": Fault("delete_groups", _silent, "valid/DELETE_GROUPS/v2", "DELETE_GROUPS connection"),
}


class FaultyBroker(BrokerProcess):
    """odradek with one of ``FAULTS``."""

    def __init__(self, data_dir: Path, fault: str) -> None:
        super().__init__(data_dir, settings=SETTINGS)
        self.program = ("-m", "tests.campaigns.wire_differential.faulty", fault)


def plant(fault: Fault) -> None:
    """Put the fault into its handler."""
    module = import_module(f"odradek.broker.handlers.{fault.handler}")
    handle = module.handle

    def spoilt(*arguments: Any) -> Any:
        answer = handle(*arguments)
        if not isinstance(answer, Reply):
            return fault.spoil(answer)
        # The handler may have converted its own already.
        later: Reply[Any] = Reply()
        answer.when_done(lambda response: later.complete(fault.spoil(response)))
        return later

    module.handle = spoilt


if __name__ == "__main__":
    plant(FAULTS[sys.argv.pop(1)])
    main()
