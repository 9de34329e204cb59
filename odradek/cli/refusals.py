"""Errors between a command and a broker in plain words, and retries after transient ones."""

from collections.abc import Callable
from threading import Event
from typing import TypeVar

import click

from odradek.protocol.errors import ErrorCode

T = TypeVar("T")

# Loading coordinators, electing leaders and ending transactions take seconds.
_ATTEMPTS = 40
_BACKOFF_S = 0.25
_TRANSIENT = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
_PLAIN_WORDS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    ErrorCode.TOPIC_ALREADY_EXISTS: "a topic with this name already exists",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "the topic's name is invalid, or the topic is an internal one",
    ErrorCode.INVALID_PARTITIONS: "the number of partitions is invalid",
    ErrorCode.INVALID_REPLICATION_FACTOR: "there are fewer brokers than replicas",
    ErrorCode.INVALID_CONFIG: "a config is invalid",
    ErrorCode.TOPIC_DELETION_DISABLED: "topics cannot be deleted here",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.NON_EMPTY_GROUP: "the group still has members",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members that commit its offsets: stop them first",
    ErrorCode.REQUEST_TIMED_OUT: "the broker did not finish in time",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the coordinator is still loading",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "the coordinator is not available",
    ErrorCode.NOT_COORDINATOR: "the coordinator has moved",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "there is no such transactional id",
    ErrorCode.INVALID_PRODUCER_EPOCH: "the producer's epoch has changed",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "a newer coordinator has written to the partition",
    ErrorCode.CONCURRENT_TRANSACTIONS: "its transaction is still ending",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "the broker cannot read the regular expression",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition has no leader",
    ErrorCode.KAFKA_STORAGE_ERROR: "its disk or its log failed",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "you are not allowed to do this to the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "you are not allowed to do this to the group",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "you are not allowed to do this to the transactional id",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "you are not allowed to do this to the cluster",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "the brokers have no delegation.token.secret.key",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "log in without a delegation token",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "you are neither the token's owner nor a renewer",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "you are not allowed to create tokens of this user",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "the token has expired",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "only users may renew a token",
    ErrorCode.SECURITY_DISABLED: "the broker has no authorizer",
    ErrorCode.UNSUPPORTED_VERSION: "the broker is too old for this",
}


class Unreachable(click.ClickException):
    """No broker answers, or the connection to it failed."""

    exit_code = 2


class Refused(click.ClickException):
    """A broker's error code. The message has the subject, the broker's words or ours for the code, and the code's name."""

    exit_code = 1

    def __init__(self, subject: str, code: int, message: str | None = None) -> None:
        try:
            self.code: ErrorCode | None = ErrorCode(code)
            name = self.code.name
        except ValueError:
            self.code, name = None, f"error code {code}"
        words = message or _PLAIN_WORDS.get(self.code or ErrorCode.NONE) or name.lower().replace("_", " ")
        super().__init__(f"{subject}: {' '.join(words.split()).rstrip('.')} ({name})")


def check(subject: str, code: int, message: str | None = None) -> None:
    """Raise Refused unless ``code`` is NONE."""
    if code:
        raise Refused(subject, code, message)


def patiently(attempt: Callable[[], T]) -> T:
    """Return the result of ``attempt``; repeat it for some seconds while a coordinator loads or a leader is elected."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except Refused as refusal:
            if refusal.code not in _TRANSIENT:
                raise
            Event().wait(_BACKOFF_S)
    return attempt()
