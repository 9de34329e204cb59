"""TLS contexts made from a listener's ``ssl.`` configs, for Python's ``ssl`` (OpenSSL).

As in Java, every certificate in a trust store is trusted on its own, including intermediate authorities' and peers' certificates.

``ssl.cipher.suites`` uses the standard's names, as Java and Kafka do. OpenSSL has its own names:

    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256    ECDHE-RSA-AES128-GCM-SHA256
    TLS_RSA_WITH_AES_256_CBC_SHA             AES256-SHA
    TLS_AES_128_GCM_SHA256                   the same: TLS 1.3
"""

from __future__ import annotations

import contextlib
import os
import re
import ssl
import tempfile
import warnings
from typing import TYPE_CHECKING, Final

from odradek.broker.security.tls.key_stores import load_trust_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.security.tls.key_stores import KeyStore
    from odradek.common.config.listener_config import ListenerConfig

TLS_1_3_SUITES: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
_SUITE: Final = re.compile(r"TLS_([A-Z0-9_]+)_WITH_([A-Z0-9_]+)")
_SIZED: Final = re.compile(r"(AES|CAMELLIA|ARIA)_(128|256)")


def openssl_name(suite: str) -> str:
    """Return OpenSSL's name of a suite before TLS 1.3. Names that are OpenSSL's already stay unchanged."""
    parts = _SUITE.fullmatch(suite)
    if parts is None:
        return suite
    exchange, cipher = parts.groups()
    cipher = _SIZED.sub(r"\1\2", cipher).replace("_CBC_SHA", "_SHA").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    cipher = cipher.replace("CCM_8", "CCM8")
    name = cipher if exchange == "RSA" else f"{exchange}_{cipher}"
    return name.replace("_", "-")


_VERSIONS: Final = {
    "TLSv1": (ssl.TLSVersion.TLSv1, ssl.OP_NO_TLSv1),
    "TLSv1.1": (ssl.TLSVersion.TLSv1_1, ssl.OP_NO_TLSv1_1),
    "TLSv1.2": (ssl.TLSVersion.TLSv1_2, ssl.OP_NO_TLSv1_2),
    "TLSv1.3": (ssl.TLSVersion.TLSv1_3, ssl.OP_NO_TLSv1_3),
}
_CLIENT_AUTH: Final = {"required": ssl.CERT_REQUIRED, "requested": ssl.CERT_OPTIONAL, "none": ssl.CERT_NONE}


def server_context(config: ListenerConfig, key_store: KeyStore) -> ssl.SSLContext:
    """Make the context for a listener's clients. ``key_store`` is the one from ``config``. Raises InvalidConfig."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _set_up(context, config, key_store)
    context.verify_mode = _CLIENT_AUTH[config["ssl.client.auth"]]
    # As in Java: clients do not need renegotiation, and it costs the broker more than the client.
    context.options |= ssl.OP_NO_RENEGOTIATION
    return context


def client_context(config: ListenerConfig, key_store: KeyStore | None) -> ssl.SSLContext:
    """Make the context for connecting to this listener of other brokers. ``key_store`` is as above. Raises InvalidConfig."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = config["ssl.endpoint.identification.algorithm"] == "https"
    _set_up(context, config, key_store)
    return context


def _set_up(context: ssl.SSLContext, config: ListenerConfig, key_store: KeyStore | None) -> None:
    """Set the versions, suites and stores of a context. Raises InvalidConfig."""
    _choose_versions(context, config)
    if key_store is not None:
        _present(context, config, key_store)
    trusted = load_trust_store(config)
    if trusted is None:
        context.set_default_verify_paths()
        return
    try:
        context.load_verify_locations(cadata=trusted)
    except ssl.SSLError as error:
        name = "ssl.truststore.location" if config["ssl.truststore.certificates"] is None else "ssl.truststore.certificates"
        raise config.invalid(name, f"certificates that can be read ({reason_of(error)})") from error
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def _choose_versions(context: ssl.SSLContext, config: ListenerConfig) -> None:
    enabled = set(config["ssl.enabled.protocols"])
    suites = config["ssl.cipher.suites"]
    if suites:
        enabled &= _choose_suites(context, config, suites)
        if not enabled:
            raise config.invalid("ssl.cipher.suites", "suites of a version in ssl.enabled.protocols")
    named = [version for version in _VERSIONS if version in enabled]
    with warnings.catch_warnings():
        # The warnings about old versions: the config asks for them.
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = _VERSIONS[named[0]][0]
        context.maximum_version = _VERSIONS[named[-1]][0]
        for version, (_, left_out) in _VERSIONS.items():
            if version not in enabled:
                context.options |= left_out


def _choose_suites(context: ssl.SSLContext, config: ListenerConfig, suites: tuple[str, ...]) -> set[str]:
    """Allow only ``suites``. Return the TLS versions that have any of them."""
    newer = TLS_1_3_SUITES.intersection(suites)
    if newer and newer != TLS_1_3_SUITES:
        allowed = f"without suites of TLS 1.3, or with all of {', '.join(sorted(TLS_1_3_SUITES))}"
        raise config.invalid("ssl.cipher.suites", f"{allowed}: Python cannot choose among them")
    older = [openssl_name(suite) for suite in suites if suite not in TLS_1_3_SUITES]
    for name in older:
        try:
            context.set_ciphers(name)
        except ssl.SSLError as error:
            raise config.invalid("ssl.cipher.suites", f"suites that OpenSSL knows; it does not know {name}") from error
    if older:
        context.set_ciphers(":".join(older))
    return ({"TLSv1.3"} if newer else set()) | (set(_VERSIONS) - {"TLSv1.3"} if older else set())


def _present(context: ssl.SSLContext, config: ListenerConfig, key_store: KeyStore) -> None:
    inline = config["ssl.keystore.key"] is not None
    name = "ssl.keystore.certificate.chain" if inline else "ssl.keystore.location"
    password = config["ssl.key.password"]
    with _as_file(key_store.chain) as chain, _as_file(key_store.key) as key:
        try:
            # With a password function, OpenSSL does not prompt at the terminal.
            context.load_cert_chain(chain, key, lambda: password or "")
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise config.invalid(name, "the certificate of the private key") from error
            if key_store.is_encrypted:
                raise config.invalid("ssl.key.password", f"the password of the private key ({reason_of(error)})") from error
            raise config.invalid(name, f"a certificate and a private key that can be used ({reason_of(error)})") from error
        except (OSError, ValueError) as error:
            raise config.invalid(name, f"a certificate and a private key that can be used ({error})") from error


@contextlib.contextmanager
def _as_file(text: str) -> Iterator[str]:
    """Give OpenSSL a path to ``text``, a secret: a file in memory if the system has them, else a private temporary file."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):  # noqa: PTH112  not a user's path
        descriptor = os.memfd_create("odradek")
        try:
            os.write(descriptor, text.encode())
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(text.encode())
        file.flush()
        yield file.name


def reason_of(error: ssl.SSLError) -> str:
    """Return OpenSSL's reason for an error, in lower case."""
    return (error.reason or str(error)).replace("_", " ").lower()
