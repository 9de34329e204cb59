"""What a client may say to a SASL listener, frame by frame, and what it sees: answers, when they come, and when it is over.

An observation is JSON. Of an answer it has what a client acts on; salts, nonces and proofs, which differ each time, are told by
their form. ``late``: it came after the delay of a failed authentication. ``closed``: the connection is over, late or at once.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.scram import (
    MECHANISMS,
    ScramMechanism,
    client_proof,
    salted_password,
)
from odradek.protocol.texts import decode_base64, encode_base64
from tests.broker.security.sasl.jwts import message, unsecured
from tests.campaigns.sasl_differential.brokers import DELAY_MS, PASSWORD, SESSION_MS, WRONG, Listeners
from tests.raw_client import RawClient, decode_response

ALICE = f"\0alice\0{PASSWORD}".encode()
_LATE_S = DELAY_MS / 1_000 * 0.9
_HANDSHAKE, _AUTHENTICATE, _VERSIONS, _METADATA = (
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.API_VERSIONS,
    ApiKey.METADATA,
)


class Talk:
    """One connection, and all that was observed on it."""

    def __init__(self, port: int) -> None:
        self.seen: list[Any] = []
        self.client = RawClient("127.0.0.1", port)
        self.last_token = b""

    def ask(self, api_key: ApiKey, version: int, **fields: Any) -> bool:
        """A request; whether the connection goes on."""
        began_s = time.monotonic()
        try:
            self.client.send(api_key, version, **fields)
            frame = self.client.receive_frame()
        except OSError:
            frame = None
        return self._observe(api_key, version, frame, time.monotonic() - began_s)

    def raw(self, data: bytes) -> bool:
        """Bytes, and a frame that is no response of a request."""
        began_s = time.monotonic()
        with suppress(OSError):
            self.client.socket.sendall(data)
        try:
            frame = self.client.receive_frame()
        except OSError:
            frame = None
        took_s = time.monotonic() - began_s
        if frame is None:
            return self._closed(took_s)
        self.last_token = frame
        self.seen.append({"token": form(frame)})
        return True

    def bare(self, token: bytes) -> bool:
        """A token as a frame of its own."""
        return self.raw(len(token).to_bytes(4) + token)

    def token(self, token: bytes, version: int = 2) -> bool:
        return self.ask(_AUTHENTICATE, version, auth_bytes=token)

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> bool:
        return self.ask(_HANDSHAKE, version, mechanism=mechanism)

    def over(self) -> None:
        """See whether it is over, or is answered."""
        self.ask(_METADATA, 9, topics=None)

    def close(self) -> list[Any]:
        self.client.socket.close()
        return self.seen

    def _observe(self, api_key: ApiKey, version: int, frame: bytes | None, took_s: float) -> bool:
        if frame is None:
            return self._closed(took_s)
        _, response = decode_response(api_key, version, frame)
        seen = {"api": api_key.name, "late": took_s >= _LATE_S}
        if api_key is _HANDSHAKE:
            seen |= {"error": int(response.error_code), "mechanisms": sorted(response.mechanisms)}
        elif api_key is _AUTHENTICATE:
            lifetime = getattr(response, "session_lifetime", None)
            self.last_token = response.auth_bytes
            seen |= {
                "error": int(response.error_code),
                "message": response.error_message,
                "token": form(response.auth_bytes),
                "lifetime_s": None if lifetime is None else coarse_min(lifetime.total_seconds()) or lifetime.total_seconds() > 0,
            }
        elif api_key is _VERSIONS:
            seen["error"] = int(response.error_code)
        self.seen.append(seen)
        return True

    def _closed(self, took_s: float) -> bool:
        self.seen.append({"closed": "late" if took_s >= _LATE_S else "at once"})
        return False


def coarse_min(duration_s: float) -> int:
    """The nearest of 0, 5, 10 and so on minutes: on a busy machine, a minute may have passed since the broker said it."""
    return round(duration_s / 300) * 5


def form(token: bytes) -> str:
    """A token of the broker's without what differs each time."""
    text = token.decode(errors="replace")
    return re.sub(r"[vs]=[A-Za-z0-9+/=]+", lambda found: f"{found[0][0]}=...", re.sub(r"r=([^,]*),", "r=...,", text))


def plain(talk: Talk, token: bytes, version: int = 2) -> None:
    if talk.handshake() and talk.token(token, version):
        talk.over()


def bare(talk: Talk, token: bytes) -> None:
    if talk.handshake(version=0) and talk.bare(token):
        talk.over()


def final_message(mechanism: ScramMechanism, password: str, bare_first: str, answer: bytes, header: str = "n,,") -> bytes:
    """SCRAM's second message."""
    values = dict(part.split("=", 1) for part in answer.decode().split(","))
    salted = salted_password(mechanism, password, decode_base64(values["s"]), int(values["i"]))
    without_proof = f"c={encode_base64(header.encode())},r={values['r']}"
    said = f"{bare_first},{answer.decode()},{without_proof}".encode()
    return f"{without_proof},p={encode_base64(client_proof(mechanism, salted, said))}".encode()


def scram(
    talk: Talk,
    name: str,
    user: str = "alice",
    password: str = PASSWORD,
    *,
    header: str = "n,,",
    alter: Callable[[bytes], bytes] = lambda data: data,
    is_bare: bool = False,
) -> None:
    """The exchange; ``alter`` alters the second message."""
    send = talk.bare if is_bare else talk.token
    bare_first = f"n={user},r=rOprNGfwEbeRWgbNEkqO"
    if not talk.handshake(name, 0 if is_bare else 1) or not send(f"{header}{bare_first}".encode()) or not talk.last_token:
        return
    if send(alter(final_message(MECHANISMS[name], password, bare_first, talk.last_token, header))):
        talk.over()


def bearer(talk: Talk, token: str, **more: Any) -> None:
    if talk.handshake("OAUTHBEARER") and talk.token(message(token, **more)) and talk.last_token.startswith(b"{"):
        talk.token(b"\x01")
    elif "closed" not in talk.seen[-1] and not talk.seen[-1].get("error"):
        talk.over()


def claims(**more: Any) -> dict[str, Any]:
    issued = int(time.time())
    return {"sub": "alice", "iat": issued, "exp": issued + 300, **more}


def renewed(talk: Talk, wait_ms: int, mechanism: str = "PLAIN", token: bytes = ALICE) -> None:
    plain(talk, ALICE)
    time.sleep(wait_ms / 1_000)
    if talk.handshake(mechanism) and talk.token(token):
        talk.over()


def expired(talk: Talk) -> None:
    plain(talk, ALICE)
    time.sleep((SESSION_MS + 300) / 1_000)
    talk.over()


def in_order(*steps: Callable[[Talk], bool]) -> Callable[[Talk], None]:
    """Steps until one ends the connection."""

    def take(talk: Talk) -> None:
        for step in steps:
            if not step(talk):
                return

    return take


def versions(version: int, name: str = "client") -> Callable[[Talk], bool]:
    named = {"client_software_name": name, "client_software_version": "1"} if version >= 3 else {}
    return lambda talk: talk.ask(_VERSIONS, version, **named)


def _as_versions_99(talk: Talk) -> bool:
    """ApiVersions in a version that nobody serves."""
    return talk.raw((12).to_bytes(4) + (18).to_bytes(2) + (99).to_bytes(2) + (1).to_bytes(4) + b"\xff\xff\0\0")


# Where the brokers differ, and why: docs/differences-all.md.
KNOWN = {
    "SCRAM-SHA-256 a short proof": "Kafka's server fails in reading the proof, and closes without an answer",
    "SCRAM-SHA-512 a short proof": "Kafka's server fails in reading the proof, and closes without an answer",
    "OAUTHBEARER another scheme": "Kafka's handler fails in telling the scheme, and closes without an answer",
    "token: log in with tokenauth=false,tokenauth=true": "Kafka proves the client's message with each extension once",
    "a frame that is too large": "odradek closes at once, Kafka after the delay",
    "a frame that is too large after the handshake": "odradek closes at once, Kafka after the delay",
    "a frame of negative size": "odradek closes at once, Kafka after the delay",
}
PLAIN_TOKENS = {
    "right": ALICE,
    "right with its authorization id": b"alice" + ALICE,
    "beyond ASCII": "\0ö\0ü".encode(),
    "wrong": f"\0alice\0{WRONG}".encode(),
    "nobody": b"\0nobody\0x",
    "another authorization id": b"bob" + ALICE,
    "no user": b"\0\0x",
    "no password": b"\0alice\0",
    "empty": b"",
    "two parts": b"alice\0x",
    "four parts": ALICE + b"\0",
    "not UTF-8": b"\0alice\0\xff\xfe",
}
METADATA = lambda talk: talk.ask(_METADATA, 9, topics=None)  # noqa: E731
FRAMES: dict[str, Callable[[Talk], None]] = {
    "metadata first": in_order(METADATA),
    "versions, metadata": in_order(versions(3), METADATA),
    "versions twice": in_order(versions(3), versions(3)),
    "versions 0": in_order(versions(0), lambda talk: talk.handshake(), lambda talk: talk.token(ALICE), METADATA),
    "versions of a client without a name": in_order(versions(3, "-"), versions(3), lambda talk: talk.handshake()),
    "versions 99": in_order(_as_versions_99, versions(3), lambda talk: talk.handshake()),
    "metadata after the handshake": in_order(lambda talk: talk.handshake(), METADATA),
    "handshake twice": in_order(lambda talk: talk.handshake(), lambda talk: talk.handshake()),
    "token first": in_order(lambda talk: talk.token(ALICE)),
    "after authentication": in_order(
        lambda talk: talk.handshake(),
        lambda talk: talk.token(ALICE),
        lambda talk: talk.handshake(),
        lambda talk: talk.token(ALICE),
    ),
    "no request first": in_order(lambda talk: talk.bare(b"\x60\x82" + bytes(30))),
    "no request after the handshake": in_order(lambda talk: talk.handshake(), lambda talk: talk.bare(b"\x60\x82" + bytes(30))),
    "an empty frame first": in_order(lambda talk: talk.bare(b"")),
    "a frame that is too large": in_order(lambda talk: talk.raw((524_289).to_bytes(4) + bytes(64))),
    "a frame that is too large after the handshake": in_order(
        lambda talk: talk.handshake(), lambda talk: talk.raw((524_289).to_bytes(4) + bytes(64))
    ),
    "a frame of negative size": in_order(lambda talk: talk.raw(b"\xff\xff\xff\xff")),
}


def dialogues() -> Iterator[tuple[str, bool, Callable[[Talk], None]]]:
    """(name, whether it is for the listener whose sessions end, what is said)."""
    for name in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "plain", ""):
        for version in (0, 1):
            yield f"handshake {version} {name}", False, lambda talk, name=name, version=version: talk.handshake(name, version)
    for case, token in PLAIN_TOKENS.items():
        yield f"PLAIN {case}", False, lambda talk, token=token: plain(talk, token)
        yield f"PLAIN bare {case}", False, lambda talk, token=token: bare(talk, token)
    for version in (0, 1):
        for case in ("right", "wrong"):
            token = PLAIN_TOKENS[case]
            yield f"PLAIN {case} {version}", False, lambda talk, token=token, version=version: plain(talk, token, version)
    for name in MECHANISMS:
        yield from scram_dialogues(name)
    yield from bearer_dialogues()
    for case, said in FRAMES.items():
        yield case, False, said
    yield "renewed", True, lambda talk: renewed(talk, 1_200)
    yield "renewed at once", True, lambda talk: renewed(talk, 0)
    yield "renewed for another", True, lambda talk: renewed(talk, 1_200, token=b"\0bob\0bob-secret")
    yield "renewed with a wrong password", True, lambda talk: renewed(talk, 1_200, token=PLAIN_TOKENS["wrong"])
    yield "renewed by another mechanism", True, lambda talk: renewed(talk, 1_200, "SCRAM-SHA-256", b"n,,n=alice,r=abc")
    yield "renewed by no mechanism", True, lambda talk: renewed(talk, 1_200, "GSSAPI")
    yield "renewed when it is over", True, lambda talk: renewed(talk, SESSION_MS + 300)
    yield "over", True, expired


def scram_dialogues(name: str) -> Iterator[tuple[str, bool, Callable[[Talk], None]]]:
    cases: dict[str, dict[str, Any]] = {
        "right": {},
        "right bare": {"is_bare": True},
        "right with its authorization id": {"header": "n,a=alice,"},
        "wrong": {"password": WRONG},
        "wrong bare": {"password": WRONG, "is_bare": True},
        "nobody": {"user": "nobody"},
        "nobody bare": {"user": "nobody", "is_bare": True},
        "another authorization id": {"header": "n,a=bob,"},
        "channel binding wanted": {"header": "p=tls-unique,,"},
        "channel binding offered": {"header": "y,,"},
        "another nonce": {"alter": lambda data: data.replace(b",r=", b",r=x", 1)},
        "no proof": {"alter": lambda data: data.partition(b",p=")[0]},
        "a short proof": {"alter": lambda data: data.partition(b",p=")[0] + b",p=AAAA"},
        "an empty second message": {"alter": lambda _data: b""},
    }
    for case, more in cases.items():
        yield f"{name} {case}", False, lambda talk, more=more: scram(talk, name, **more)
    for case, token in {
        "an empty first message": b"",
        "no first message": b"\0alice\0x",
        "a delegation token": b"n,,n=alice,r=abc,tokenauth=true",
    }.items():
        yield f"{name} {case}", False, lambda talk, token=token: talk.handshake(name) and talk.token(token)


def bearer_dialogues() -> Iterator[tuple[str, bool, Callable[[Talk], None]]]:
    tokens: dict[str, Callable[[], str]] = {
        "right": lambda: unsecured(claims()),
        "expired": lambda: unsecured(claims(exp=int(time.time()) - 5)),
        "without an end": lambda: unsecured({"sub": "alice"}),
        "without a subject": lambda: unsecured({"exp": int(time.time()) + 300}),
        "a subject that is a number": lambda: unsecured(claims(sub=7)),
        "a blank subject": lambda: unsecured(claims(sub=" ")),
        "of the future": lambda: unsecured(claims(iat=int(time.time()) + 100)),
        "over before it begins": lambda: unsecured(claims(iat=int(time.time()) - 1, exp=int(time.time()) - 2)),
        "signed": lambda: unsecured(claims(), {"alg": "RS256"}, "c2ln"),
        "with a signature": lambda: unsecured(claims(), signature="c2ln"),
        "no token": lambda: "abc",
    }
    for case, make in tokens.items():
        yield f"OAUTHBEARER {case}", False, lambda talk, make=make: bearer(talk, make())
    fine = tokens["right"]
    yield "OAUTHBEARER its authorization id", False, lambda talk: bearer(talk, fine(), authorization_id="alice")
    yield "OAUTHBEARER another authorization id", False, lambda talk: bearer(talk, fine(), authorization_id="bob")
    yield "OAUTHBEARER extensions", False, lambda talk: bearer(talk, fine(), extensions="trace=1\x01")
    for case, token in {
        "empty": b"",
        "go on": b"\x01",
        "no auth": b"n,,\x01a=b\x01\x01",
        "another scheme": b"n,,\x01auth=Basic abc\x01\x01",
        "no end": b"n,,\x01auth=Bearer abc\x01",
    }.items():
        yield f"OAUTHBEARER {case}", False, lambda talk, token=token: talk.handshake("OAUTHBEARER") and talk.token(token)


def observe(listeners: Listeners, *, only: Callable[[str], bool] = lambda _name: True) -> dict[str, list[Any]]:
    """What each dialogue sees."""
    found = {}
    for name, is_renewed, said in dialogues():
        if only(name):
            talk = Talk(listeners.renewed if is_renewed else listeners.clients)
            said(talk)
            found[name] = talk.close()
    return found
