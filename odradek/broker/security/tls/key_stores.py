"""The key store and trust store of a listener: its certificate chain and private key, and its trusted certificates.

    PEM       a file, or the text itself as a config
    PKCS12    a file, read with the optional package cryptography
    JKS       a file in Java's own format, read by ``encodings``

As in Java, a PKCS12 file may be declared JKS and the other way round. If a file has several private keys, the first is served.

Any problem with a store is an InvalidConfig with the key of the config to mend; secrets are never shown. The rules about
combinations of configs are those of Kafka's DefaultSslEngineFactory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek.broker.security.tls.encodings import (
    JCEKS_MAGIC,
    MAGIC,
    JavaKeyStore,
    JavaKeyStoreError,
    PemBlock,
    WrongPassword,
    pem_block,
    pem_blocks,
    read_java_key_store,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate

    from odradek.common.config.listener_config import ListenerConfig

_KEY_STORE: Final = "ssl.keystore"
_TRUST_STORE: Final = "ssl.truststore"
_DER_SEQUENCE: Final = b"\x30"


@dataclass(frozen=True, slots=True)
class KeyStore:
    """A certificate chain, the broker's own certificate first, and its private key: both PEM. ``repr`` hides the key."""

    chain: str
    key: str = field(repr=False)
    is_encrypted: bool

    @property
    def certificate(self) -> bytes:
        """The broker's own certificate, in DER."""
        return pem_blocks(self.chain)[0].der


def load_key_store(config: ListenerConfig) -> KeyStore | None:
    """Load the key store of a listener; None if it has none. Raises InvalidConfig."""
    key, chain = config["ssl.keystore.key"], config["ssl.keystore.certificate.chain"]
    if key is None and chain is None:
        return _key_store_file(config)
    for name, value in (("ssl.keystore.key", key), ("ssl.keystore.certificate.chain", chain)):
        if value is None:
            raise config.invalid(name, "set: a key and a certificate chain go together")
    _check_inline(config, _KEY_STORE, "ssl.keystore.key")
    return _key_store_of(config, pem_blocks(chain), pem_blocks(key), "ssl.keystore.certificate.chain", "ssl.keystore.key")


def load_server_key_store(config: ListenerConfig) -> KeyStore:
    """Load the key store of a listener. Raises InvalidConfig, also if the listener has none."""
    key_store = load_key_store(config)
    if key_store is None:
        raise config.invalid("ssl.keystore.location", "set: an SSL listener needs a certificate and its private key")
    return key_store


def load_trust_store(config: ListenerConfig) -> str | None:
    """Load the trusted certificates as PEM; None if there is no trust store. Raises InvalidConfig."""
    text = config["ssl.truststore.certificates"]
    name = "ssl.truststore.certificates"
    if text is None:
        data = _read(config, _TRUST_STORE)
        name = "ssl.truststore.location"
        if data is None:
            return None
        if config["ssl.truststore.type"] != "PEM":
            return _trusted(config, name, _certificates(config, data, config["ssl.truststore.password"]))
        text = _text(config, name, data)
    else:
        _check_inline(config, _TRUST_STORE, name)
    return _trusted(config, name, [block.text for block in pem_blocks(text) if block.is_certificate])


def store_files(config: ListenerConfig) -> tuple[tuple[int, int] | None, ...]:
    """Return the modification time (ns) and size of each store's file, to detect changes; None without a readable file."""
    found: list[tuple[int, int] | None] = []
    for location in (config["ssl.keystore.location"], config["ssl.truststore.location"]):
        try:
            status = None if location is None else Path(location).stat()
        except OSError:
            status = None
        found.append(None if status is None else (status.st_mtime_ns, status.st_size))
    return tuple(found)


def _trusted(config: ListenerConfig, name: str, certificates: list[str]) -> str:
    if not certificates:
        raise config.invalid(name, "a store with a certificate in it")
    return "".join(certificates)


def _check_inline(config: ListenerConfig, store: str, name: str) -> None:
    if config[f"{store}.type"] != "PEM":
        raise config.invalid(f"{store}.type", f"PEM if {name} is set")
    if config[f"{store}.location"] is not None:
        raise config.invalid(f"{store}.location", f"left out if {name} is set")
    if config[f"{store}.password"] is not None:
        raise config.invalid(f"{store}.password", "left out: PEM has a password for the key only, ssl.key.password")


def _key_store_file(config: ListenerConfig) -> KeyStore | None:
    data = _read(config, _KEY_STORE)
    name = "ssl.keystore.location"
    if data is None:
        return None
    if config["ssl.keystore.type"] == "PEM":
        blocks = pem_blocks(_text(config, name, data))
        return _key_store_of(config, blocks, blocks, name, name)
    password = config["ssl.keystore.password"]
    if password is None:
        raise config.invalid("ssl.keystore.password", "set with ssl.keystore.location, unless ssl.keystore.type is PEM")
    return _java_key_store(config, data, password) if data.startswith(MAGIC) else _pkcs12_key_store(config, data, password)


def _java_key_store(config: ListenerConfig, data: bytes, password: str) -> KeyStore:
    name = "ssl.keystore.location"
    entry = next((each for each in _java(config, _KEY_STORE, data, password).private_keys if each.chain), None)
    if entry is None:
        raise config.invalid(name, "a store with a private key and its certificate")
    own_password = config["ssl.key.password"]
    try:
        key = entry.key(password if own_password is None else own_password)
    except WrongPassword as error:
        allowed = (
            "set: the private key's password is not the store's" if own_password is None else "the password of the private key"
        )
        raise config.invalid("ssl.key.password", allowed) from error
    except JavaKeyStoreError as error:
        raise config.invalid(name, f"an intact JKS store ({error})") from error
    return KeyStore("".join(map(_pem_certificate, entry.chain)), pem_block("PRIVATE KEY", key), is_encrypted=False)


def _pkcs12_key_store(config: ListenerConfig, data: bytes, password: str) -> KeyStore:
    if config["ssl.key.password"] not in (None, password):
        raise config.invalid("ssl.key.password", "the same as ssl.keystore.password: a PKCS12 store has one password")
    store = _pkcs12(config, _KEY_STORE, data, password)
    if store.key is None or store.cert is None:
        raise config.invalid("ssl.keystore.location", "a store with a private key and its certificate")
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat  # 21 ms

    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    chain = _chain(store.cert.certificate, [each.certificate for each in store.additional_certs])
    return KeyStore("".join(map(_pem_of, chain)), key, is_encrypted=False)


def _key_store_of(
    config: ListenerConfig, certificates: Iterable[PemBlock], keys: Iterable[PemBlock], chain_name: str, key_name: str
) -> KeyStore:
    chain = [block.text for block in certificates if block.is_certificate]
    if not chain:
        raise config.invalid(chain_name, "PEM with a certificate in it (-----BEGIN CERTIFICATE-----)")
    key = next((block for block in keys if block.is_private_key), None)
    if key is None:
        raise config.invalid(key_name, "PEM with a private key in it (-----BEGIN PRIVATE KEY-----)")
    if key.is_encrypted and config["ssl.key.password"] is None:
        raise config.invalid("ssl.key.password", "set: the private key is encrypted")
    return KeyStore("".join(chain), key.text, key.is_encrypted)


def _read(config: ListenerConfig, store: str) -> bytes | None:
    """Return the bytes of a store's file; None if no file is configured. Raises InvalidConfig."""
    location, password = config[f"{store}.location"], config[f"{store}.password"]
    if location is None:
        if password is not None:
            raise config.invalid(f"{store}.location", f"set with {store}.password")
        return None
    if config[f"{store}.type"] == "PEM" and password is not None:
        raise config.invalid(f"{store}.password", "left out: PEM has a password for the key only, ssl.key.password")
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise config.invalid(f"{store}.location", f"a file that can be read ({error.strerror})") from error


def _text(config: ListenerConfig, name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        kind = config.key(name.removesuffix("location") + "type")
        raise config.invalid(name, f"a PEM text file, or {kind} must be set to the store's type") from error


def _certificates(config: ListenerConfig, data: bytes, password: str | None) -> list[str]:
    """Return a JKS or PKCS12 trust store's certificates. As in Java, those with a private key are trusted, too."""
    if data.startswith(MAGIC):
        store = _java(config, _TRUST_STORE, data, password)
        own = [entry.chain[0] for entry in store.private_keys if entry.chain]
        return [_pem_certificate(each) for each in (*own, *store.trusted_certificates)]
    found = _pkcs12(config, _TRUST_STORE, data, password)
    with_key = [] if found.cert is None else [found.cert]
    return [_pem_of(each.certificate) for each in (*with_key, *found.additional_certs)]


def _java(config: ListenerConfig, store: str, data: bytes, password: str | None) -> JavaKeyStore:
    """Read a JKS file. Raises InvalidConfig."""
    try:
        return read_java_key_store(data, password)
    except JavaKeyStoreError as error:
        raise config.invalid(f"{store}.location", f"an intact JKS store ({error})") from error
    except WrongPassword as error:
        allowed = f"the password of {config[f'{store}.location']}, unless the file was altered"
        raise config.invalid(f"{store}.password", allowed) from error


def _pkcs12(config: ListenerConfig, store: str, data: bytes, password: str | None) -> PKCS12KeyAndCertificates:
    """Read a PKCS12 file. Raises InvalidConfig."""
    location = config[f"{store}.location"]
    if data.startswith(JCEKS_MAGIC):
        command = f"keytool -importkeystore -srcstoretype JCEKS -srckeystore {location} -deststoretype PKCS12"
        allowed = f"a JKS, PKCS12 or PEM file, not JCEKS; convert it: {command} -destkeystore {location}.p12"
        raise config.invalid(f"{store}.location", allowed)
    if not data.startswith(_DER_SEQUENCE):
        kind = config.key(f"{store}.type")
        raise config.invalid(f"{store}.location", f"a JKS or PKCS12 store, or {kind} must be set to the store's type")
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12  # 38 ms
    except ImportError as error:
        command = f"openssl pkcs12 -in {location} -out {location}.pem"
        allowed = f"PEM, unless cryptography is installed (pip install 'odradek[tls]'); convert the store: {command}"
        raise config.invalid(f"{store}.type", allowed) from error
    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        if password is None:
            raise config.invalid(f"{store}.password", f"set: {location} cannot be read without one") from error
        raise config.invalid(f"{store}.location", f"a PKCS12 store that {store}.password opens ({error})") from error


def _chain(own: Certificate, others: list[Certificate]) -> list[Certificate]:
    """Return the certificate, then its issuer's, and so on. Unrelated certificates are left out."""
    chain = [own]
    while True:
        issuer = next((each for each in others if each.subject == chain[-1].issuer and each not in chain), None)
        if issuer is None:
            return chain
        chain.append(issuer)


def _pem_of(certificate: Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding  # 21 ms

    return _pem_certificate(certificate.public_bytes(Encoding.DER))


def _pem_certificate(der: bytes) -> str:
    return pem_block("CERTIFICATE", der)
