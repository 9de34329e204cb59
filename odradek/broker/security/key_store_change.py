"""Whether the key store of a listener may take the place of another: whoever connects is to find the same name and hosts.

As in Kafka, the new certificate has the subject of the former one unless ``ssl.allow.dn.changes`` is set, and all its alternative
names unless ``ssl.allow.san.changes`` is. Kafka compares all entries of both stores, in their order; here it is the certificates
that are served.
"""

from odradek.broker.config.listener_config import ListenerConfig
from odradek.broker.security.alternative_names import alternative_names
from odradek.broker.security.distinguished_name import canonical_subject, subject_of
from odradek.broker.security.key_stores import KeyStore


def check_key_store_change(config: ListenerConfig, former: KeyStore, new: KeyStore) -> None:
    """Raise InvalidConfig where ``new`` may not take the place of ``former``."""
    name = "ssl.keystore.location" if config["ssl.keystore.key"] is None else "ssl.keystore.certificate.chain"
    try:
        allowed = _allowed(config, former.certificate, new.certificate)
    except ValueError as error:
        raise config.invalid(name, "a certificate whose names can be read") from error
    if allowed is not None:
        raise config.invalid(name, allowed)


def _allowed(config: ListenerConfig, before: bytes, after: bytes) -> str | None:
    """What is allowed in place of ``after``; None if that is. ValueError where names cannot be read."""
    if not config["ssl.allow.dn.changes"] and not _is_same_subject(before, after):
        subjects = f"{subject_of(before)} and not {subject_of(after)}"
        return f"a certificate of the same subject, {subjects}, unless ssl.allow.dn.changes is true"
    if config["ssl.allow.san.changes"]:
        return None
    lacking = ", ".join(sorted(map(str, alternative_names(before) - alternative_names(after))))
    if not lacking:
        return None
    return f"a certificate with all alternative names of the former one ({lacking}), unless ssl.allow.san.changes is true"


def _is_same_subject(before: bytes, after: bytes) -> bool:
    if canonical_subject(before) == canonical_subject(after):
        return True
    # As in Kafka: a value may be text in one of them and DER in the other.
    return subject_of(before).lower() == subject_of(after).lower()
