"""What AlterConfigs and IncrementalAlterConfigs share: each resource of a request is altered, and answered, by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.broker.logging import log
from odradek.broker.metadata.alterations import TOGETHER, Alteration, Answer, alter_resources, deciding, failed
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from odradek.broker.handlers.services import ControllerServices


def alter(services: ControllerServices, alterations: Sequence[Alteration], *, validate_only: bool) -> Reply[list[Answer]]:
    """Carry out each alteration, or only validate it, many of them in slices; (error code, message) of each."""
    view = services.controller.config_view(services.config)
    if len(alterations) <= TOGETHER:
        return alter_resources(view, alterations, None if validate_only else services.controller.alter_configs)
    answers: list[Answer] = []
    work = deciding(view, alterations, answers)
    done: Reply[Any] = services.slices.run(_only_decide(work)) if validate_only else services.controller.alter_many_configs(work)

    def answer_all(error: Exception | None) -> list[Answer]:
        if error is None:
            return answers
        if not isinstance(error, KafkaError):
            log.error("configs could not be validated", error)
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return failed([*answers, *((ErrorCode.NONE, None) for _ in alterations[len(answers) :])], error)

    reply: Reply[list[Answer]] = Reply()
    done.when_done(lambda error: reply.complete(answer_all(error)))
    return reply


def _only_decide(work: Generator[object, None, None]) -> Generator[None, None, None]:
    for _ in work:
        yield None
