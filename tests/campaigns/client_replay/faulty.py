"""Faults in odradek that a replay must find: one answer, in one field."""

from collections.abc import Callable
from typing import Any

from odradek.protocol.api_keys import ApiKey


def _in_partitions(field: str, **changed: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Change all partitions of the topics in this field."""

    def change(response: Any) -> Any:
        def spoilt(each: Any) -> Any:
            return each._replace(**{name: make(getattr(each, name)) for name, make in changed.items()})

        topics = [each._replace(partitions=list(map(spoilt, each.partitions))) for each in getattr(response, field)]
        return response._replace(**{field: topics})

    return change


# By name: the API, the field that is to be found, and the change.
FAULTS: dict[str, tuple[ApiKey, str, Callable[[Any], Any]]] = {
    "generation": (
        ApiKey.JOIN_GROUP,
        "generation_id",
        lambda response: response._replace(generation_id=response.generation_id + 7),
    ),
    "offset": (ApiKey.LIST_OFFSETS, "topics.partitions.offset", _in_partitions("topics", offset=lambda offset: offset + 1)),
    "commit": (ApiKey.END_TXN, "error_code", lambda response: response._replace(error_code=47)),
    "records": (ApiKey.FETCH, "responses.partitions.records", _in_partitions("responses", records=lambda _: None)),
}
