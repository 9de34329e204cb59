"""Faults in odradek that a replay must find: one answer, in one field."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from odradek.broker.context import RequestContext
from odradek.protocol.api_keys import ApiKey
from odradek.testing import ThreadedBroker


class _Fault:
    """A gate that changes the answers of one API."""

    def __init__(self, api: ApiKey, change: Callable[[Any], Any]) -> None:
        self._api = api
        self._change = change

    def admit(self, context: RequestContext, request: Any) -> None:
        """Part of ``Gate``."""

    def release(self, context: RequestContext, response: Any) -> Any:
        """Part of ``Gate``."""
        return self._change(response) if context.api_key is self._api else response


def _one_more_offset(response: Any) -> Any:
    return response._replace(
        topics=[
            topic._replace(partitions=[partition._replace(offset=partition.offset + 1) for partition in topic.partitions])
            for topic in response.topics
        ]
    )


def _other_records(response: Any) -> Any:
    return response._replace(
        responses=[
            topic._replace(partitions=[partition._replace(records=None) for partition in topic.partitions])
            for topic in response.responses
        ]
    )


# By name: the API, the field that is to be found, and the change.
FAULTS: dict[str, tuple[ApiKey, str, Callable[[Any], Any]]] = {
    "generation": (
        ApiKey.JOIN_GROUP,
        "generation_id",
        lambda response: response._replace(generation_id=response.generation_id + 7),
    ),
    "offset": (ApiKey.LIST_OFFSETS, "topics.partitions.offset", _one_more_offset),
    "commit": (ApiKey.END_TXN, "error_code", lambda response: response._replace(error_code=47)),
    "records": (ApiKey.FETCH, "responses.partitions.records", _other_records),
}


@contextmanager
def faulty(broker: ThreadedBroker, fault: str | None) -> Iterator[None]:
    """Within, the broker has the fault of that name, if it is one."""
    if fault is not None:
        api, _, change = FAULTS[fault]
        broker._thread.broker.add_gate(_Fault(api, change))
    yield
