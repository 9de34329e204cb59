"""Faults in odradek that a replay must find: one answer, in one field."""

from collections.abc import Callable
from typing import Any, NamedTuple

from odradek.protocol.api_keys import ApiKey
from odradek.testing import Replay
from tests.campaigns.planted import SpoiltAnswers


class Fault(NamedTuple):
    """``change`` makes an answer of ``api`` another one, which is found as a difference at ``path``."""

    api: ApiKey
    path: str
    change: Callable[[Any], Any]

    @property
    def spoilt(self) -> SpoiltAnswers:
        """To be put into a broker, or into a proxy before it."""
        return SpoiltAnswers(self.api, self.change)

    @property
    def answer(self) -> str:
        """One of ``answers``."""
        return f"{self.api.name} {self.path}"


def answers(replayed: Replay) -> set[str]:
    """The fields of answers that are not as they were recorded."""
    return {f"{each.exchange.api.name} {each.path}" for each in replayed.differences}


def _in_partitions(field: str, **changed: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Change all partitions of the topics in this field."""

    def change(response: Any) -> Any:
        def spoilt(each: Any) -> Any:
            return each._replace(**{name: make(getattr(each, name)) for name, make in changed.items()})

        topics = [each._replace(partitions=list(map(spoilt, each.partitions))) for each in getattr(response, field)]
        return response._replace(**{field: topics})

    return change


# By name. Each is in the answers of another API.
FAULTS: dict[str, Fault] = {
    "generation": Fault(
        ApiKey.JOIN_GROUP,
        "generation_id",
        lambda response: response._replace(generation_id=response.generation_id + 7),
    ),
    "offset": Fault(ApiKey.LIST_OFFSETS, "topics.partitions.offset", _in_partitions("topics", offset=lambda offset: offset + 1)),
    "commit": Fault(ApiKey.END_TXN, "error_code", lambda response: response._replace(error_code=47)),
    "records": Fault(ApiKey.FETCH, "responses.partitions.records", _in_partitions("responses", records=lambda _: None)),
}
