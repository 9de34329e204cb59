"""The cluster of a command that produces or consumes: an event loop, the connection settings, and errors in plain words."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from odradek.cli.cluster import Refused, Unreachable
from odradek.cli.options import command_config, did_you_mean, security_hint
from odradek.client.api import ClientError, RequestRefused, UnsupportedVersion
from odradek.client.cluster_client import ClusterClient, NoAnswer, open_cluster
from odradek.protocol.errors import ErrorCode

T = TypeVar("T")
_CLIENT_ID = "odradek-cli"
# A broker that creates topics does so at the first request. It has a leader within this time.
_CREATION_MS = 10_000


def with_cluster(bootstrap: Sequence[tuple[str, int]], job: Callable[[ClusterClient], Awaitable[T]]) -> T:
    """Run a job on an event loop of its own, with the cluster. Raises Refused and Unreachable; KeyboardInterrupt for Ctrl-C."""

    async def run() -> T:
        async with open_cluster(bootstrap, _CLIENT_ID, *command_config()) as cluster:
            return await job(cluster)

    try:
        return asyncio.run(run())
    except RequestRefused as refusal:
        raise Refused(refusal.subject, refusal.code, refusal.message) from refusal
    except UnsupportedVersion as failure:
        raise Unreachable(f"the broker is too old, or too new: {failure.reason}") from failure
    except NoAnswer as failure:
        raise Unreachable(failure.reason + (security_hint() if failure.is_cut_off else "")) from failure
    except ClientError as failure:
        raise Unreachable(failure.reason) from failure


async def find_topic(cluster: ClusterClient, topic: str, *, create: bool = False) -> bool:
    """Learn the leaders of a topic. With ``create``, a broker that creates topics may create it; return whether it did.

    Raises Refused for a topic that does not exist, with the names that it resembles.
    """
    if await _is_there(cluster, topic):
        return False
    if create:
        # The answer is an error, because the topic has no leader yet.
        with contextlib.suppress(RequestRefused):
            await cluster.refresh([topic], create=True)
        if await _is_there(cluster, topic, _CREATION_MS):
            return True
    why = "there is no such topic" + (f", and the broker creates none: odradek topics create {topic}" if create else "")
    raise Refused(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, why + did_you_mean(topic, await cluster.topics()))


async def _is_there(cluster: ClusterClient, topic: str, patience_ms: int = 0) -> bool:
    """Learn the leaders of a topic. Return False if it is not there, after ``patience_ms``."""
    try:
        await cluster.patiently(lambda: cluster.refresh([topic]), patience_ms=patience_ms)
    except RequestRefused as refusal:
        if refusal.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return False
        # A topic without a leader is waited for when it is written or read.
        if refusal.code != ErrorCode.LEADER_NOT_AVAILABLE:
            raise
    return True
