"""What clients do with delegation tokens: create them, log in by them, renew, expire and describe them.

An observation is JSON. Tokens are told by names of this dialogue, times by how far they lie apart, and HMACs by whether they are
right.
"""

import hmac
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from odradek.common.acls import AclOperation, AclPermission, AclResourceType, PatternType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.client_codecs import response_decoder
from odradek.protocol.scram import (
    MECHANISMS,
)
from odradek.protocol.texts import encode_base64
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.campaigns.sasl_differential.brokers import SECRET_KEY, Listeners
from tests.campaigns.sasl_differential.dialogues import Talk, coarse_min, final_message, plain
from tests.raw_client import RawClient

CREATE, RENEW, EXPIRE, DESCRIBE = (ApiKey[f"{verb}_DELEGATION_TOKEN"] for verb in ("CREATE", "RENEW", "EXPIRE", "DESCRIBE"))
NEWEST = {CREATE: 3, RENEW: 2, EXPIRE: 2, DESCRIBE: 3}
_MINUTE_MS = 60_000
_R, _O = AclResourceType, AclOperation
# Who may do what beyond what belongs to it.
ACLS = (
    (_R.USER, "User:carol", "User:alice", _O.CREATE_TOKENS),
    (_R.USER, "User:alice", "User:carol", _O.DESCRIBE_TOKENS),
    (_R.TOPIC, "carols", "User:carol", _O.DESCRIBE),
)


def add_acls(listeners: Listeners) -> None:
    """Have the broker know them."""
    client = RawClient("127.0.0.1", listeners.plaintext)
    creations = [
        {
            "resource_type": int(kind),
            "resource_name": name,
            "resource_pattern_type": int(PatternType.LITERAL),
            "principal": principal,
            "host": "*",
            "operation": int(operation),
            "permission_type": int(AclPermission.ALLOW),
        }
        for kind, name, principal, operation in ACLS
    ]
    answer = client.call(ApiKey.CREATE_ACLS, 3, creations=creations)
    assert [int(each.error_code) for each in answer.results] == [0] * len(ACLS)
    client.socket.close()


class Tokens:
    """A dialogue: its connections, its tokens, and what was seen."""

    def __init__(self, listeners: Listeners) -> None:
        self._listeners = listeners
        self.seen: list[Any] = []
        # By the name that this dialogue gives them: id and HMAC.
        self.made: dict[str, tuple[str, bytes]] = {}
        self._talks: dict[str, Talk] = {}

    def by(self, user: str) -> Talk:
        """The connection of a user; of nobody, by a listener that asks for no name."""
        if user not in self._talks:
            port = self._listeners.plaintext if user == "nobody" else self._listeners.clients
            talk = self._talks[user] = Talk(port)
            if user != "nobody":
                plain(talk, f"\0{user}\0{user}-secret".encode())
        return self._talks[user]

    def log_in(
        self, name: str, mechanism: str = "SCRAM-SHA-256", *, shown: bytes | None = None, header: str = "n,,", asked: str = "true"
    ) -> None:
        """A connection by a token, which ``by`` knows under the token's name; ``shown`` is another HMAC than its own."""
        token_id, right = self.made[name]
        talk = self._talks[name] = Talk(self._listeners.clients)
        bare = f"n={token_id},r=rOprNGfwEbeRWgbNEkqO,tokenauth={asked}"
        if talk.handshake(mechanism) and talk.token(f"{header.replace('ID', token_id)}{bare}".encode()) and talk.last_token:
            password = encode_base64(right if shown is None else shown)
            final = final_message(MECHANISMS[mechanism], password, bare, talk.last_token, header.replace("ID", token_id))
            talk.token(final)
        self.seen.append({"log in": [self._told(each) for each in talk.seen[1:]]})
        talk.seen.clear()

    def topics(self, user: str, *names: str) -> None:
        """Which topics a client may know of."""
        answer = self._call(user, ApiKey.METADATA, 9, topics=[{"name": name} for name in names])
        self.seen.append(
            {"topics": "closed" if answer is None else sorted((each.name, each.error_code) for each in answer.topics)}
        )

    def create(
        self,
        user: str,
        name: str = "mine",
        *,
        renewers: Sequence[str] = (),
        version: int = 3,
        lifetime_ms: int = -1,
        **fields: Any,
    ) -> None:
        """Create a token that is called ``name`` here."""
        people = [dict(zip(("principal_type", "principal_name"), each.split(":"), strict=True)) for each in renewers]
        answer = self._call(user, CREATE, version, renewers=people, max_lifetime_ms=lifetime_ms, **fields)
        if answer is not None and not answer.error_code:
            self.made[name] = answer.token_id, answer.hmac
            self._wait_until_seen(user, name, answer.expiry_timestamp_ms)
        self.seen.append({"create": "closed" if answer is None else self._token(answer)})

    def renew(self, user: str, name: str = "mine", period_ms: int = -1, *, version: int = 2, shown: bytes | None = None) -> None:
        self._change(RENEW, user, name, shown, version, renew_period_ms=period_ms)

    def expire(self, user: str, name: str = "mine", period_ms: int = -1, *, version: int = 2, shown: bytes | None = None) -> None:
        self._change(EXPIRE, user, name, shown, version, expiry_time_period_ms=period_ms)

    def describe(self, user: str, *owners: str, version: int = 3, everybody: bool = False) -> None:
        """The tokens of this dialogue among those of ``owners``, or of ``everybody``."""
        people = [dict(zip(("principal_type", "principal_name"), each.split(":"), strict=True)) for each in owners]
        answer = self._call(user, DESCRIBE, version, owners=None if everybody else people)
        found = () if answer is None else [each for each in answer.tokens if each.token_id in self._names()]
        tokens = sorted((self._token(each) for each in found), key=lambda each: str(each["token"]))
        self.seen.append({"describe": "closed" if answer is None else answer.error_code, "tokens": tokens})

    def close(self) -> list[Any]:
        for talk in self._talks.values():
            talk.close()
        return self.seen

    def _change(self, api_key: ApiKey, user: str, name: str, shown: bytes | None, version: int, **fields: int) -> None:
        right = self.made[name][1] if name in self.made else b""
        answer = self._call(user, api_key, version, hmac=right if shown is None else shown, **fields)
        if answer is None:
            self.seen.append({api_key.name: "closed"})
            return
        expiry_ms = answer.expiry_timestamp_ms
        if not answer.error_code:
            is_removed = api_key is EXPIRE and fields["expiry_time_period_ms"] < 0
            self._wait_until_seen(user, name, None if is_removed else expiry_ms)
        minutes = coarse_min(expiry_ms / 1000 - time.time()) if expiry_ms > 0 else expiry_ms
        self.seen.append({api_key.name: answer.error_code, "minutes": minutes})

    def _wait_until_seen(self, user: str, name: str, expiry_ms: int | None) -> None:
        """Until the broker has heard of a change from its controller: a token expires then, or is gone."""

        def is_seen() -> bool:
            tokens = self._call(user, DESCRIBE, NEWEST[DESCRIBE], owners=None).tokens
            found = [each.expiry_timestamp for each in tokens if each.token_id == self.made[name][0]]
            return found == ([] if expiry_ms is None else [expiry_ms])

        until(is_seen)

    def _call(self, user: str, api_key: ApiKey, version: int, **fields: Any) -> Any:
        client = self.by(user).client
        try:
            client.send(api_key, version, **fields)
            frame = client.receive_frame()
        except OSError:
            frame = None
        return None if frame is None else response_decoder(api_key, version)(frame)

    def _token(self, token: Any) -> dict[str, Any]:
        issue, expiry, last = (
            (token.issue_timestamp_ms, token.expiry_timestamp_ms, token.max_timestamp_ms)
            if hasattr(token, "issue_timestamp_ms")
            else (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp)
        )
        right = hmac.digest(SECRET_KEY.encode(), token.token_id.encode(), "sha512")
        return {
            "error": getattr(token, "error_code", None),
            "owner": (token.principal_type, token.principal_name),
            "requester": (token.token_requester_principal_type, token.token_requester_principal_name),
            "issued": issue if issue <= 0 else abs(issue / 1000 - time.time()) < 300,
            "expires after": coarse_min((expiry - issue) / 1000) * _MINUTE_MS or expiry > 0,
            "over after": last - max(issue, 0),
            "token": self._names().get(token.token_id, len(token.token_id)),
            "hmac": "right" if token.hmac == right else len(token.hmac),
            "renewers": [tuple(each) for each in getattr(token, "renewers", ())],
        }

    def _names(self) -> dict[str, str]:
        return {token_id: name for name, (token_id, _) in self.made.items()}

    @staticmethod
    def _told(seen: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in seen.items() if key != "api"}


def _as_owner(*steps: Callable[[Tokens], None]) -> Callable[[Tokens], None]:
    """Alice has a token that Bob may renew; then ``steps``."""

    def take(tokens: Tokens) -> None:
        tokens.create("alice", renewers=["User:bob"])
        for step in steps:
            step(tokens)

    return take


def _all_four(user: str) -> Callable[[Tokens], None]:
    def ask(tokens: Tokens) -> None:
        for version in (1, 2, 3):
            tokens.create(user, "another", version=version)
            tokens.describe(user, version=version, everybody=True)
        tokens.create(user, "another", renewers=["Group:bob"], owner_principal_type="User", owner_principal_name="bob")
        for version in (1, 2):
            tokens.renew(user, version=version)
            tokens.expire(user, version=version, period_ms=1)

    return ask


def _expired(*steps: Callable[[Tokens], None]) -> Callable[[Tokens], None]:
    def take(tokens: Tokens) -> None:
        tokens.create("alice", renewers=["User:bob"], lifetime_ms=1)
        time.sleep(0.1)
        for step in steps:
            step(tokens)

    return take


def dialogues() -> Iterator[tuple[str, Callable[[Tokens], None]]]:
    """(name, what is said)."""
    for version in (1, 2, 3):
        yield f"create {version}", lambda t, version=version: t.create("alice", version=version, renewers=["User:bob"])
    for lifetime_ms in (0, -7, 1, 600_000, 90_000_000, 2**63 - 1):
        yield f"create for {lifetime_ms} ms", lambda t, lifetime_ms=lifetime_ms: t.create("alice", lifetime_ms=lifetime_ms)
    yield "a renewer that is no user", lambda t: t.create("alice", renewers=["User:bob", "Group:bob"])
    yield (
        "a renewer twice",
        lambda t: (
            t.create("alice", renewers=["User:bob", "User:bob", "User:alice"]),
            t.describe("alice", "User:alice"),
        ),
    )
    for owner, kind in (
        ("carol", "User"),
        ("bob", "User"),
        ("alice", "User"),
        ("carol", "Group"),
        ("carol", None),
        ("", "User"),
        (None, "User"),
    ):
        fields = {"owner_principal_type": kind, "owner_principal_name": owner}
        yield f"create for {kind}:{owner}", lambda t, fields=fields: t.create("alice", **fields)
    yield (
        "create for another, with a renewer that is no user",
        lambda t: t.create("alice", renewers=["Group:x"], owner_principal_type="User", owner_principal_name="bob"),
    )
    yield "a token of another", _of_another
    yield "no name", _as_owner(_all_four("nobody"))
    yield "by a token", _as_owner(lambda t: t.log_in("mine"), _all_four("mine"))
    yield from _logins()
    yield from _changes()
    yield from _descriptions()


def _of_another(tokens: Tokens) -> None:
    tokens.create("alice", owner_principal_type="User", owner_principal_name="carol")
    tokens.log_in("mine")
    tokens.topics("mine", "carols", "alices")
    tokens.renew("alice")
    tokens.renew("carol")
    tokens.describe("alice", "User:carol")
    tokens.describe("carol", "User:alice")
    tokens.describe("bob", everybody=True)


def _logins() -> Iterator[tuple[str, Callable[[Tokens], None]]]:
    for mechanism in MECHANISMS:
        yield (
            f"log in {mechanism}",
            _as_owner(lambda t, mechanism=mechanism: t.log_in("mine", mechanism), lambda t: t.topics("mine", "alices")),
        )
    yield "log in by another HMAC", _as_owner(lambda t: t.log_in("mine", shown=bytes(64)))
    yield "log in by the key's id alone", _as_owner(lambda t: t.log_in("mine", shown=b""))
    yield "log in with the token's id for an authorization id", _as_owner(lambda t: t.log_in("mine", header="n,a=ID,"))
    yield "log in with the owner for an authorization id", _as_owner(lambda t: t.log_in("mine", header="n,a=alice,"))
    for asked in ("TRUE", "yes", "false", "false,tokenauth=true", "true,tokenauth=false"):
        yield f"log in with tokenauth={asked}", _as_owner(lambda t, asked=asked: t.log_in("mine", asked=asked))
    yield "log in by a token that is removed", _as_owner(lambda t: t.expire("alice"), lambda t: t.log_in("mine"))
    yield "log in by an expired token", _expired(lambda t: t.log_in("mine"), lambda t: t.topics("mine", "alices"))
    yield (
        "log in by a renewed token",
        _as_owner(lambda t: t.log_in("mine"), lambda t: t.renew("alice", period_ms=600_000), lambda t: t.log_in("mine")),
    )


def _changes() -> Iterator[tuple[str, Callable[[Tokens], None]]]:
    for verb in ("renew", "expire"):

        def change(user: str, period_ms: int = 600_000, verb: str = verb, **more: Any) -> Callable[[Tokens], None]:
            return lambda t: getattr(t, verb)(user, "mine", period_ms, **more)

        for user in ("alice", "bob", "carol"):
            yield f"{verb} by {user}", _as_owner(change(user), lambda t: t.describe("alice", "User:alice"))
        for period_ms in (0, -1, -9, 1_200_000, 2**63 - 1):
            yield (
                f"{verb} for {period_ms} ms",
                _as_owner(change("alice", period_ms), change("alice", period_ms), lambda t: t.describe("alice", "User:alice")),
            )
        for version in (1, 2):
            yield f"{verb} {version}", _as_owner(change("alice", version=version))
        for case, shown in {"another HMAC": bytes(64), "no HMAC": b""}.items():
            yield f"{verb} by {case}", _as_owner(change("alice", shown=shown))
        yield (
            f"{verb} an expired token",
            _expired(change("alice"), change("bob", -1), change("carol"), lambda t: t.describe("alice", "User:alice")),
        )


def _descriptions() -> Iterator[tuple[str, Callable[[Tokens], None]]]:
    def make(tokens: Tokens) -> None:
        tokens.create("alice", "alice's", renewers=["User:bob"])
        tokens.create("bob", "bob's")
        tokens.create("alice", "carol's", owner_principal_type="User", owner_principal_name="carol", renewers=["User:ann"])

    for user in ("alice", "bob", "carol"):

        def ask(tokens: Tokens, user: str = user) -> None:
            make(tokens)
            for version in (1, 2, 3):
                tokens.describe(user, version=version, everybody=True)
            tokens.describe(user)
            for owner in ("User:alice", "User:bob", "User:carol", "User:ann", "Group:alice"):
                tokens.describe(user, owner)
            tokens.describe(user, "User:alice", "User:bob", "User:alice")

        yield f"describe by {user}", ask


def disabled_dialogues() -> Iterator[tuple[str, Callable[[Tokens], None]]]:
    """What is said to a broker without a secret key."""
    yield "disabled", _all_four("alice")
    yield "disabled, and no name", _all_four("nobody")
    yield "disabled, by a token", lambda t: (t.made.update(mine=("abc", b"abc")), t.log_in("mine"))


def observe_tokens(
    listeners: Listeners,
    said: Iterator[tuple[str, Callable[[Tokens], None]]],
    *,
    only: Callable[[str], bool] = lambda _name: True,
) -> dict[str, list[Any]]:
    """What each dialogue sees."""
    found = {}
    for name, take in said:
        if only(f"token: {name}"):
            tokens = Tokens(listeners)
            take(tokens)
            found[f"token: {name}"] = tokens.close()
    return found
