"""Odd SASL frames to the state machine, and odd TLS records to the broker's end of a connection, without a socket.

A frame depends on the seed and its number alone, a record on its connection's keys, too. No exception may come out, nobody may be
let in, no secret may be in what is told, no more than one line may be logged, and memory may not grow.
"""

import random
import tempfile
from collections import Counter
from pathlib import Path

from tests.broker.network.tls_pair import Pair, tls_listener
from tests.broker.security.sasl.odd_frames import enabled, talk
from tests.campaigns.fuzz.frames import mutated, resident_kib
from tests.tls import Certificates

_FRAMES_A_RUN = 1_000
_MAX_GROWTH_KIB = 8 * 1024
# By then OpenSSL and Python have what they keep.
_WARM_UP_SHARE = 10
_SENT = b"asked"
# Change of cipher, alert, handshake, data, heartbeat, nothing.
_KINDS = (20, 21, 22, 23, 24, 99)
_VERSIONS = (b"\x03\x00", b"\x03\x01", b"\x03\x03", b"\x03\x04", b"\x00\x02")
_LENGTHS = (0, 1, 2, 16, 17, 2**14, 2**14 + 256, 2**14 + 257, 2**16 - 1)


class Failure(Exception):
    """The broker violated one of the rules."""


def sasl_frames(seed: int, count: int) -> Counter[str]:
    """Send so many to the state machine. Raises Failure."""
    mechanisms = enabled()
    outcomes: Counter[str] = Counter()
    before_kib = resident_kib()
    for first in range(0, count, _FRAMES_A_RUN):
        if first <= count // _WARM_UP_SHARE:
            before_kib = resident_kib()
        try:
            seen = talk(mechanisms, random.Random(seed << 32 | first), min(_FRAMES_A_RUN, count - first))
        except Exception as error:
            raise Failure(f"SASL frames {first} and on: {type(error).__name__}: {error}") from error
        outcomes.update({f"SASL: {kind.__name__}": times for kind, times in seen.items()})
    _check_growth(before_kib, "SASL frames")
    return outcomes


def tls_records(seed: int, count: int) -> Counter[str]:
    """Send so many to brokers' ends, in the place of a hello or behind a handshake. Raises Failure."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as directory:
        certificates = Certificates(Path(directory))
        listener = tls_listener(certificates)
        before_kib = resident_kib()
        for number in range(count):
            if number <= count // _WARM_UP_SHARE:
                before_kib = resident_kib()
            rng = random.Random(seed << 32 | number)
            pair = Pair(certificates, listener=listener)
            try:
                outcomes[_meet_one(pair, rng)] += 1
            except Exception as error:
                raise Failure(f"TLS record {number}: {type(error).__name__}: {error}") from error
        _check_growth(before_kib, "TLS records")
    return outcomes


def odd_hello(hello: bytes, rng: random.Random) -> bytes:
    """What a client's first record becomes."""
    match rng.randrange(4):
        case 0:
            return odd_record(rng)
        case 1:
            # The same bytes in records of a few bytes each, which is allowed, then something odd.
            size = rng.randrange(1, 50)
            pieces = [hello[at : at + size] for at in range(5, len(hello), size)]
            return b"".join(hello[:3] + len(piece).to_bytes(2, "big") + piece for piece in pieces) + odd_record(rng)
        case _:
            return mutated(hello, [odd_record(rng)], rng)


def odd_record(rng: random.Random) -> bytes:
    """A header of TLS, and a body that may be shorter or longer than it says."""
    length = rng.choice((*_LENGTHS, rng.randrange(2**16)))
    body = rng.randbytes(min(length, rng.choice((0, 1, 40, length))))
    return bytes([rng.choice(_KINDS)]) + rng.choice(_VERSIONS) + length.to_bytes(2, "big") + body


def _meet_one(pair: Pair, rng: random.Random) -> str:
    """Send one odd record, and whether the connection waits for more or was closed."""
    if rng.random() < 0.5:
        pair.give(odd_hello(pair.hello(), rng))
        place, sent = "in a handshake", b""
    else:
        pair.shake_hands().send(_SENT)
        record = pair.record(_SENT)
        pair.give(mutated(record, [odd_record(rng)], rng) if rng.random() < 0.5 else odd_record(rng))
        place, sent = "behind a handshake", _SENT
    assert len(pair.lines) <= 1, pair.lines
    # Where something odd follows the record, it is a good one all the same.
    assert pair.plain.received in {sent, sent + sent}, pair.plain.received
    assert pair.socket.is_open or pair.lines or pair.plain.has_ended
    return f"TLS: {place}: " + ("waits for more" if pair.socket.is_open else "closed")


def _check_growth(before_kib: int, what: str) -> None:
    growth_kib = resident_kib() - before_kib
    if growth_kib > _MAX_GROWTH_KIB:
        raise Failure(f"{what}: memory grew by {growth_kib} KiB, of {_MAX_GROWTH_KIB}")
