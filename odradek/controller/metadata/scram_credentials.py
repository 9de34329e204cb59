"""Users' SCRAM credentials: decisions on alterations, and descriptions (KIP-554). Kafka's class is ScramControlManager."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.controller.metadata.features import METADATA_VERSION
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.alter_user_scram_credentials import (
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from odradek.protocol.message_types.describe_user_scram_credentials import CredentialInfo, DescribeUserScramCredentialsResult
from odradek.protocol.metadata_records.security import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from odradek.protocol.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramMechanism, server_key, stored_key

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from odradek.controller.metadata.image import MetadataImage
    from odradek.protocol.message_types.alter_user_scram_credentials import AlterUserScramCredentialsRequest
    from odradek.protocol.metadata_records import MetadataRecord

_Alteration: TypeAlias = ScramCredentialDeletion | ScramCredentialUpsertion
# metadata.version 3.5-IV2 brought the records.
_FIRST_METADATA_VERSION: Final = 11
_MECHANISMS: Final = frozenset(ScramMechanism)
# The number of users handled without a pause: a millisecond or two.
_TOGETHER: Final = 100


def alter(
    image: MetadataImage, request: AlterUserScramCredentialsRequest
) -> Generator[None, None, tuple[list[AlterUserScramCredentialsResult], list[MetadataRecord]]]:
    """Return the result of each user, refused ones last, and the records.

    Only valid alterations of users named once are carried out.
    """
    accepted: dict[str, MetadataRecord] = {}
    refused: dict[str, KafkaError] = {}
    alterations: list[_Alteration] = [*request.deletions, *request.upsertions]
    for place, alteration in enumerate(alterations, 1):
        if place % _TOGETHER == 0:
            yield None
        name = alteration.name
        if name in refused:
            continue
        if accepted.pop(name, None) is not None:
            reason = "A user credential cannot be altered twice in the same request"
            refused[name] = KafkaError(ErrorCode.DUPLICATE_RESOURCE, reason)
            continue
        try:
            accepted[name] = _record(image, alteration)
        except KafkaError as error:
            refused[name] = error
    results = [AlterUserScramCredentialsResult(user=name) for name in accepted]
    results += [
        AlterUserScramCredentialsResult(user=name, error_code=error.code, error_message=error.reason or None)
        for name, error in refused.items()
    ]
    return results, list(accepted.values())


class ScramDescriptions:
    """The current mechanisms and iterations of users; of all users if none are named."""

    def __init__(self, image: MetadataImage, names: Iterable[str]) -> None:
        self._known: dict[str, list[UserScramCredentialRecord]] = {}
        for record in image.kept.scram_credentials():
            self._known.setdefault(record.name, []).append(record)
        # The number of times the request names each user.
        self.asked = Counter(names) or dict.fromkeys(sorted(self._known), 1)

    def describe(self, name: str) -> DescribeUserScramCredentialsResult:
        """Return the description of one of the users in ``asked``."""
        known = sorted(self._known.get(name, ()), key=lambda each: each.mechanism)
        return _described(name, self.asked[name], [CredentialInfo(each.mechanism, each.iterations) for each in known])


def credential_record(
    name: str, mechanism: ScramMechanism, *, salt: bytes, salted: bytes, iterations: int
) -> UserScramCredentialRecord:
    """Return the stored record of a user. The record alone does not allow a login."""
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=salt,
        stored_key=stored_key(mechanism, salted),
        server_key=server_key(mechanism, salted),
        iterations=iterations,
    )


def _described(name: str, count: int, found: Sequence[CredentialInfo]) -> DescribeUserScramCredentialsResult:
    if count > 1:
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return DescribeUserScramCredentialsResult(user=name, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=message)
    if not found:
        message = f"Attempt to describe a user credential that does not exist: {name}"
        return DescribeUserScramCredentialsResult(user=name, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=message)
    return DescribeUserScramCredentialsResult(user=name, error_message="", credential_infos=found)


def _record(image: MetadataImage, alteration: _Alteration) -> MetadataRecord:
    """Return the record of an alteration. Raises KafkaError if it is invalid."""
    if image.features.get(METADATA_VERSION, 0) < _FIRST_METADATA_VERSION:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
    if not alteration.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if alteration.mechanism not in _MECHANISMS:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    mechanism = ScramMechanism(alteration.mechanism)
    if isinstance(alteration, ScramCredentialUpsertion):
        return _upserted(alteration, mechanism)
    if image.kept.scram_credential(alteration.name, mechanism) is None:
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    return RemoveUserScramCredentialRecord(name=alteration.name, mechanism=mechanism)


def _upserted(upsertion: ScramCredentialUpsertion, mechanism: ScramMechanism) -> UserScramCredentialRecord:
    if upsertion.iterations < MIN_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if upsertion.iterations > MAX_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not upsertion.salted_password:
        # Kafka answers the same, as its hash function refuses an empty key.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return credential_record(
        upsertion.name,
        mechanism,
        salt=upsertion.salt,
        salted=upsertion.salted_password,
        iterations=upsertion.iterations,
    )
