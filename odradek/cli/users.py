"""``odradek users``: the users that authenticate by SCRAM, on any broker.

A password is never an argument, because other users of the machine can see arguments. It is asked for, or read from a file.
The broker receives only the salted password.
"""

import secrets
from collections.abc import Iterable
from pathlib import Path

import click

from odradek.cli.cluster import Cluster, Refused, check
from odradek.cli.options import Servers, asks_a_broker, command_group, exit_status, row_of, show
from odradek.client.admin_apis import ALTER_USER_SCRAM_CREDENTIALS, DESCRIBE_USER_SCRAM_CREDENTIALS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from odradek.protocol.message_types.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from odradek.protocol.scram import MAX_ITERATIONS, MECHANISMS, MIN_ITERATIONS, ScramMechanism, salted_password

_SALT_BYTES = 24
_LISTED = ("user", "mechanism", "iterations")
_mechanism = click.option(
    "--mechanism",
    "names",
    type=click.Choice(list(MECHANISMS)),
    multiple=True,
    help="A SCRAM mechanism; repeatable.  [default: both]",
)


@command_group()
def users() -> None:
    """Manage users that authenticate by SCRAM."""


@users.command("list")
@asks_a_broker
def list_users(bootstrap: Servers, as_json: bool) -> int:
    """List every user with a SCRAM credential."""
    with Cluster(bootstrap) as cluster:
        answer = _described(cluster)
    rows = [
        (result.user, ScramMechanism(found.mechanism).text, found.iterations)
        for result in sorted(answer.results, key=lambda each: each.user)
        for found in result.credential_infos
    ]
    show(_LISTED, [row_of(_LISTED, *row) for row in rows], as_json=as_json)
    return 0


@users.command()
@click.argument("name", metavar="USER")
@asks_a_broker
@_mechanism
@click.option("--iterations", type=click.IntRange(MIN_ITERATIONS, MAX_ITERATIONS), default=MIN_ITERATIONS, show_default=True)
@click.option(
    "--password-file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="A file whose first line is the password; - for standard input.  [default: ask]",
)
def add(name: str, bootstrap: Servers, as_json: bool, names: tuple[str, ...], iterations: int, password_file: Path | None) -> int:
    """Add a user, or change a user's password. Open sessions continue."""
    password = _password(name, password_file)
    upsertions = [salted_credential(name, mechanism, password, iterations) for mechanism in chosen_mechanisms(names)]
    with Cluster(bootstrap) as cluster:
        for upsertion in upsertions:
            # A request may alter a user only once.
            _alter(cluster, AlterUserScramCredentialsRequest(upsertions=[upsertion]))
    rows = [(name, ScramMechanism(each.mechanism).text, each.iterations) for each in upsertions]
    show(_LISTED, [row_of(_LISTED, *row) for row in rows], as_json=as_json)
    return 0


@users.command()
@click.argument("name", metavar="USER")
@asks_a_broker
@_mechanism
def remove(name: str, bootstrap: Servers, as_json: bool, names: tuple[str, ...]) -> int:
    """Remove a user's credentials, for all mechanisms or for some. Open sessions continue."""
    removed, refusals = [], []
    with Cluster(bootstrap) as cluster:
        (found,) = _described(cluster, name).results
        if found.error_code:
            refusals.append(Refused(name, found.error_code, "there is no such user with a SCRAM credential"))
        known = {info.mechanism for info in found.credential_infos}
        for mechanism in chosen_mechanisms(names):
            if mechanism in known:
                _alter(
                    cluster,
                    AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name=name, mechanism=mechanism)]),
                )
                removed.append({"user": name, "mechanism": mechanism.text})
            elif names and not found.error_code:
                message = f"the user has no credential for {mechanism.text}"
                refusals.append(Refused(name, ErrorCode.RESOURCE_NOT_FOUND, message))
    if removed or as_json:
        show(("user", "mechanism"), removed, as_json=as_json)
    return exit_status(refusals)


def salted_credential(name: str, mechanism: ScramMechanism, password: str, iterations: int) -> ScramCredentialUpsertion:
    """Return a credential with the salted password. The password itself does not leave this process."""
    salt = secrets.token_bytes(_SALT_BYTES)
    salted = salted_password(mechanism, password, salt, iterations)
    return ScramCredentialUpsertion(name=name, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted)


def chosen_mechanisms(names: Iterable[str]) -> list[ScramMechanism]:
    """Return the mechanisms by name, each once; all of them without names."""
    return [MECHANISMS[name] for name in dict.fromkeys(names)] or list(ScramMechanism)


def _password(name: str, file: Path | None) -> str:
    if file is None:
        password: str = click.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True)
        return password
    try:
        with click.open_file(str(file), encoding="utf-8") as lines:
            password = lines.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{file}: {error}") from error
    if not password:
        raise click.BadParameter(f"{file}: the first line is empty: write the password there")
    return password


def _described(cluster: Cluster, *names: str) -> DescribeUserScramCredentialsResponse:
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])
    answer = cluster.any.call(DESCRIBE_USER_SCRAM_CREDENTIALS, request)
    check("users", answer.error_code, answer.error_message)
    return answer


def _alter(cluster: Cluster, request: AlterUserScramCredentialsRequest) -> None:
    for result in cluster.controller().call(ALTER_USER_SCRAM_CREDENTIALS, request).results:
        check(result.user, result.error_code, result.error_message)
