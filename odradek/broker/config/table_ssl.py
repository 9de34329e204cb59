"""The table, part of TLS. Each config can be set for one listener alone: ``listener.name.<listener in lower case>.ssl...``.

What this module says of stores is what ``security`` does with them. A config of Java's own (``ssl.provider``) is not here but in
``ignored``.
"""

from odradek.broker.config.definitions import BOOLEAN, LIST, PASSWORD, STRING, ConfigDefinition
from odradek.broker.config.validators import Entries, OneOf

_Config = ConfigDefinition
PROTOCOLS = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
_STORES = OneOf("JKS", "PKCS12", "PEM")

SSL = (
    _Config(
        "ssl.keystore.type",
        STRING,
        "JKS",
        "The format of the key store. As in Java, JKS takes a PKCS12 file as well, and PKCS12 one of JKS. Of several keys in "
        "a file the first is served.",
        _STORES,
    ),
    _Config(
        "ssl.keystore.location",
        STRING,
        None,
        "The file with the broker's certificate chain and private key. PEM: one file with both.",
    ),
    _Config("ssl.keystore.password", PASSWORD, None, "The password of the key store; not for PEM."),
    _Config(
        "ssl.key.password",
        PASSWORD,
        None,
        "The password of the private key. JKS: that of the store, unless set. PKCS12: that of the store.",
    ),
    _Config("ssl.keystore.key", PASSWORD, None, "The private key itself, as PEM, in place of a file."),
    _Config("ssl.keystore.certificate.chain", PASSWORD, None, "The certificate chain itself, as PEM, in place of a file."),
    _Config("ssl.truststore.type", STRING, "JKS", "The format of the trust store, as ssl.keystore.type has it.", _STORES),
    _Config(
        "ssl.truststore.location",
        STRING,
        None,
        "The file with the certificates that peers are trusted by. Without it they are those of the system.",
    ),
    _Config(
        "ssl.truststore.password",
        PASSWORD,
        None,
        "The password of the store; not for PEM. PKCS12 cannot do without one. JKS can, but nothing shows then that it is whole.",
    ),
    _Config("ssl.truststore.certificates", PASSWORD, None, "The trusted certificates themselves, as PEM, in place of a file."),
    _Config(
        "ssl.client.auth",
        STRING,
        "none",
        "Whether a client has to show a certificate, may show one, or is not asked.",
        OneOf("required", "requested", "none"),
    ),
    _Config(
        "ssl.enabled.protocols",
        LIST,
        ("TLSv1.2", "TLSv1.3"),
        "The versions of TLS that are spoken. OpenSSL may refuse those below 1.2 all the same.",
        Entries(*PROTOCOLS, least=1),
    ),
    _Config(
        "ssl.protocol",
        STRING,
        "TLSv1.3",
        "The version that Java's SSLContext is made for.",
        OneOf("TLS", *PROTOCOLS),
        no_use="what is spoken is what ssl.enabled.protocols says, as on a broker of Kafka's",
    ),
    _Config(
        "ssl.cipher.suites",
        LIST,
        (),
        "The cipher suites, by their names in the standard, as Kafka has them, or in OpenSSL. Empty: OpenSSL's choice. Those of "
        "TLS 1.3 are allowed all together or not at all.",
        Entries(),
    ),
    _Config(
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        "How the distinguished name of a client's certificate becomes the name of its principal: DEFAULT, or "
        "RULE:pattern/replacement/[LU], separated by commas; the first that matches.",
        None,
        "low",
    ),
    _Config(
        "ssl.allow.dn.changes",
        BOOLEAN,
        False,
        "Whether a key store that is loaded while the broker runs may have a certificate of another subject.",
        None,
        "low",
    ),
    _Config(
        "ssl.allow.san.changes",
        BOOLEAN,
        False,
        "Whether a key store that is loaded while the broker runs may have a certificate without some of the hosts, and other "
        "alternative names, of the former one.",
        None,
        "low",
    ),
    _Config(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        "Whether a broker that connects to another one checks that the certificate is of that host (https), or not (empty).",
        OneOf("https", ""),
        "low",
    ),
)
SSL_NAMES = frozenset(row.name for row in SSL)
SSL_SECTIONS = (("TLS", SSL),)
