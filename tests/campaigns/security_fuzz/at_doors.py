"""Odd frames and records to the listeners of a running broker, over many connections at once, beside clients at work."""

import asyncio
import contextlib
import random
import re
import ssl
import time
import urllib.request
from collections import Counter
from pathlib import Path

from odradek.protocol.api_keys import ApiKey
from tests.broker.security.sasl.odd_frames import frames
from tests.campaigns.fuzz.frames import memory_kib, mutated
from tests.campaigns.security_fuzz.doors import AtWork, Doors
from tests.campaigns.security_fuzz.in_process import Failure, odd_hello, odd_record
from tests.raw_client import RawClient
from tests.tls import hello_of

_CONNECTIONS = 64
_FRAMES_A_CONNECTION = 4
# Longer than a refusal is delayed (connection.failed.authentication.delay.ms).
_SILENCE_S = 0.3
_SPOILT_STREAM_SHARE = 0.1
_MAX_GROWTH_KIB = 16 * 1024
_FAULT = re.compile(r"Traceback|a request failed|a connection failed")
# Half-open handshakes by number: nothing sent, a part of a hello, all of it and no answer to what comes.
_PARTS = 3
_CLIENTS_ARE_ASKED_EVERY = 500


async def odd_clients(at: Doors, seed: int, count: int) -> Counter[str]:
    """Send ``count`` frames and records; how often each was met how."""
    outcomes: Counter[str] = Counter()
    numbers = iter(range(0, count, _FRAMES_A_CONNECTION))
    hello = hello_of(at.certificates.client_context())

    async def send() -> None:
        for number in numbers:
            rng = random.Random(seed << 32 | number)
            listener = rng.choice(("SASL_PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL"))
            outcome = await _meet(at, listener, hello, rng)
            outcomes[f"{listener}: {outcome}"] += _FRAMES_A_CONNECTION

    await asyncio.gather(*(send() for _ in range(_CONNECTIONS)))
    return outcomes


async def _meet(at: Doors, listener: str, hello: bytes, rng: random.Random) -> str:
    """One connection's frames; whether it was closed."""
    tls = at.certificates.client_context() if listener == "SASL_SSL" else None
    reader, writer = await asyncio.open_connection(at.host, at.ports[listener], ssl=tls, server_hostname=at.host if tls else None)
    try:
        for stream in _streams(listener, hello, rng):
            writer.write(stream)
        async with asyncio.timeout(_SILENCE_S):
            while await reader.read(1 << 16):
                pass
    except TimeoutError:
        return "connections that wait for more"
    except (ConnectionError, ssl.SSLError):
        pass
    finally:
        await _drop([writer])
    return "connections closed"


def _streams(listener: str, hello: bytes, rng: random.Random) -> list[bytes]:
    if listener == "SSL":
        return [odd_hello(hello, rng), *(odd_record(rng) for _ in range(_FRAMES_A_CONNECTION - 1))]
    odd = frames(rng)
    streams = []
    for _ in range(_FRAMES_A_CONNECTION):
        frame = next(odd)
        stream = len(frame).to_bytes(4, "big") + frame
        streams.append(mutated(stream, [frame], rng) if rng.random() < _SPOILT_STREAM_SHARE else stream)
    return streams


async def half_open(at: Doors, count: int, work: AtWork) -> int:
    """Hold ``count`` handshakes open at once, then drop them; the broker's memory with all of them, in KiB."""
    hello = hello_of(at.certificates.client_context())
    held: list[asyncio.StreamWriter] = []
    try:
        for number in range(count):
            _, writer = await asyncio.open_connection(at.host, at.ports["SSL"])
            held.append(writer)
            if number % _PARTS:
                writer.write(hello[: len(hello) // (number % _PARTS)])
            if number % _CLIENTS_ARE_ASKED_EVERY == 0:
                await asyncio.to_thread(work.wait_for_more)
        held_kib = memory_kib(at.broker.pid)
        await asyncio.to_thread(work.wait_for_more)
        return held_kib
    finally:
        await _drop(held)


async def _drop(writers: list[asyncio.StreamWriter]) -> None:
    for writer in writers:
        writer.transport.abort()
    await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


def wait_until_alone(at: Doors, before: int) -> None:
    """Until the broker has no more sockets than ``before``: what was dropped is gone."""
    ends_s = time.monotonic() + 60
    while sockets(at) > before:
        if time.monotonic() > ends_s:
            raise Failure(f"{sockets(at)} sockets are left, and there were {before}")
        time.sleep(0.1)


def check_log(at: Doors) -> int:
    """How many lines it has. Raises Failure for an exception in it."""
    lines = at.broker.stderr.splitlines()
    faults = [line for line in lines if _FAULT.search(line)]
    if faults:
        raise Failure(f"unhandled exceptions {len(faults)}; the first: {faults[0]}")
    return len(lines)


def check_secrets(at: Doors) -> int:
    """How many characters of log and metrics were searched. Raises Failure where a secret is found."""
    texts = {"the log": at.broker.stderr, "the metrics": metrics(at), "what it is configured to": described_configs(at)}
    for name, text in texts.items():
        for secret in at.secrets():
            if secret in text:
                raise Failure(f"{name} has the secret {secret!r}")
    return sum(map(len, texts.values()))


def check_memory(at: Doors, before_kib: int) -> str:
    """In words. Raises Failure where it grew too much."""
    after_kib = memory_kib(at.broker.pid)
    said = f"memory (PSS): {before_kib} KiB before, {after_kib} KiB after, of {_MAX_GROWTH_KIB} KiB of growth"
    if after_kib - before_kib > _MAX_GROWTH_KIB:
        raise Failure(said)
    return said


def metrics(at: Doors) -> str:
    """The page that Prometheus reads."""
    with urllib.request.urlopen(f"{at.broker.http_url}/metrics", timeout=10) as page:
        return str(page.read().decode())


def described_configs(at: Doors) -> str:
    """The broker's configs as DescribeConfigs tells them to anybody."""
    with RawClient(at.host, at.ports["PLAINTEXT"]) as client:
        broker_id = str(client.call(ApiKey.METADATA, 9, topics=[]).brokers[0].node_id)
        resources = [{"resource_type": 4, "resource_name": broker_id, "configuration_keys": None}]
        return repr(client.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=resources, include_synonyms=True))


def sockets(at: Doors) -> int:
    """How many the broker has."""
    count = 0
    for descriptor in Path(f"/proc/{at.broker.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            count += str(descriptor.readlink()).startswith("socket:")
    return count
