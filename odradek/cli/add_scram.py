"""The argument of ``--add-scram``, as Kafka's format tool takes it: a user that a cluster begins with.

SCRAM-SHA-256=[name=alice,password=alice-secret]
SCRAM-SHA-512=[name=alice,iterations=8192,salt="BASE64",saltedpassword="BASE64"]
"""

import secrets

import click

from odradek.broker.metadata.scram_credentials import credential_record
from odradek.protocol.metadata_records.security import UserScramCredentialRecord
from odradek.protocol.scram import MAX_ITERATIONS, MECHANISMS, MIN_ITERATIONS, decode_base64, salted_password

_SALT_BYTES = 24
_KEYS = ("name", "password", "iterations", "salt", "saltedpassword")


def credentials(_context: click.Context, _option: click.Parameter, arguments: tuple[str, ...]) -> list[UserScramCredentialRecord]:
    """The records of ``arguments``. Raises BadParameter, which tells no password."""
    return [_credential(argument.strip()) for argument in arguments]


def _credential(argument: str) -> UserScramCredentialRecord:
    name, _, listed = argument.partition("=")
    mechanism = MECHANISMS.get(name)
    if mechanism is None or not (listed.startswith("[") and listed.endswith("]")):
        raise click.BadParameter(f"not of the form MECHANISM=[name=...,password=...] with one of {', '.join(MECHANISMS)}")
    given = _given(listed[1:-1])
    text = given.get("iterations", str(MIN_ITERATIONS))
    iterations = int(text) if text.isdecimal() else 0
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise click.BadParameter(f"iterations are {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    try:
        salt = decode_base64(given["salt"]) if "salt" in given else secrets.token_bytes(_SALT_BYTES)
        salted = decode_base64(given["saltedpassword"]) if "saltedpassword" in given else None
    except ValueError as error:
        raise click.BadParameter("salt and saltedpassword are in base64") from error
    if "password" in given:
        salted = salted_password(mechanism, given["password"], salt, iterations)
    elif salted is None or "salt" not in given:
        raise click.BadParameter("a password is wanted, or saltedpassword with its salt")
    return credential_record(given["name"], mechanism, salt=salt, salted=salted, iterations=iterations)


def _given(text: str) -> dict[str, str]:
    given = {}
    for pair in text.split(","):
        key, equals, value = pair.partition("=")
        if not equals or key not in _KEYS:
            raise click.BadParameter(f"what stands in brackets are KEY=VALUE pairs of {', '.join(_KEYS)}")
        is_quoted = len(value) > 1 and value[0] == value[-1] == '"'
        given[key] = value[1:-1] if is_quoted else value
    if not given.get("name"):
        raise click.BadParameter("the name of a user is wanted")
    return given
