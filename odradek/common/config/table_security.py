"""The table, fifth part: security. TLS, SASL, delegation tokens, the authorizer.

Each TLS config can be set for one listener only: ``listener.name.<listener in lower case>.ssl...``. The descriptions of stores
say what ``security`` does with them. Configs of Java itself (``ssl.provider``) are in ``ignored``.

Configs of one mechanism of one listener are set as ``listener.name.<listener>.<mechanism>.<config>`` (``listener_config``).
Listeners and mechanisms are in lower case there. Left out: Kerberos, and configs for fetching tokens (``ignored``).
"""

from odradek.common.config.definitions import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    PASSWORD,
    PER_BROKER,
    STRING,
    AtLeast,
    ConfigDefinition,
    ConfigType,
    Entries,
    OneOf,
)

_Config = ConfigDefinition

SASL = (
    _Config(
        "sasl.enabled.mechanisms",
        LIST,
        ("GSSAPI",),
        "The mechanisms clients can authenticate with: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. There is no GSSAPI, so "
        "a SASL listener needs this config: for all listeners, or as listener.name.<listener>.sasl.enabled.mechanisms.",
        Entries(),
        update_mode=PER_BROKER,
    ),
    _Config(
        "sasl.jaas.config",
        PASSWORD,
        None,
        "The JAAS line of a mechanism, with its users. Set it as listener.name.<listener>.<mechanism>.sasl.jaas.config, both in "
        "lower case. As in Kafka, it has no effect without a listener and a mechanism.",
        update_mode=PER_BROKER,
    ),
    _Config(
        "sasl.mechanism.inter.broker.protocol",
        STRING,
        "GSSAPI",
        "The mechanism a broker authenticates with at other brokers if the listener between brokers uses SASL. It must be among "
        "that listener's sasl.enabled.mechanisms. The listener's JAAS line needs a username and a password. OAUTHBEARER needs a "
        "token instead: see sasl.login.callback.handler.class.",
        update_mode=PER_BROKER,
    ),
    _Config(
        "sasl.mechanism.controller.protocol",
        STRING,
        "GSSAPI",
        "The mechanism a broker authenticates with at controllers if the first listener in controller.listener.names uses SASL: "
        "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. The listener's JAAS line needs a username and a password. "
        "OAUTHBEARER needs a token instead: see sasl.login.callback.handler.class.",
        importance="high",
    ),
    _Config(
        "connections.max.reauth.ms",
        LONG,
        0,
        "A session ends when it is this old, unless its client has authenticated again (KIP-368). 0: it never ends. While "
        "the broker runs, alter listener.name.<listener>.connections.max.reauth.ms, or the same for one mechanism.",
    ),
    _Config(
        "connection.failed.authentication.delay.ms",
        INT,
        100,
        "How long the broker waits before it answers a failed authentication and closes the connection.",
        AtLeast(0),
        "low",
    ),
    _Config(
        "sasl.server.max.receive.size",
        INT,
        524288,
        "The largest request of a client that has not authenticated yet.",
    ),
    _Config(
        "sasl.server.callback.handler.class",
        ConfigType.CLASS,
        None,
        "The class that checks credentials. A listener's OAUTHBEARER has two of Kafka's: OAuthBearerValidatorCallbackHandler, "
        "the default here, and OAuthBearerUnsecuredValidatorCallbackHandler, which accepts unsigned tokens.",
    ),
    _Config(
        "sasl.login.callback.handler.class",
        ConfigType.CLASS,
        None,
        "The class that gets this node's token for OAUTHBEARER at other nodes: Kafka's OAuthBearerLoginCallbackHandler, for a "
        "token in a file, or OAuthBearerUnsecuredLoginCallbackHandler, the default, for an unsigned token.",
    ),
    _Config(
        "sasl.oauthbearer.token.endpoint.url",
        STRING,
        None,
        "The file URL of this node's token for other nodes. The file is read for each connection, and again before the session "
        "ends.",
    ),
    _Config(
        "sasl.oauthbearer.jwks.endpoint.url",
        STRING,
        None,
        "The http, https or file URL of a JWKS document: the keys that tokens are signed with.",
    ),
    _Config(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        LONG,
        3600000,
        "The keys are fetched again when they are this old.",
        importance="low",
    ),
    _Config(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        LONG,
        100,
        "The wait after a failed fetch of the keys. It grows with each failure.",
        importance="low",
    ),
    _Config(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        LONG,
        10000,
        "The longest wait after a failed fetch of the keys.",
        importance="low",
    ),
    _Config(
        "sasl.oauthbearer.clock.skew.seconds",
        INT,
        30,
        "How far the clocks of the broker and the token issuer may be apart.",
        importance="low",
    ),
    _Config(
        "sasl.oauthbearer.expected.audience",
        LIST,
        (),
        "A token must be for one of these audiences (aud).",
        importance="high",
    ),
    _Config("sasl.oauthbearer.expected.issuer", STRING, None, "A token must be from this issuer (iss).", importance="high"),
    _Config(
        "sasl.oauthbearer.allow.unverified.audience",
        BOOLEAN,
        False,
        "Accepts tokens for any audience if sasl.oauthbearer.expected.audience is not set, which is refused otherwise.",
    ),
    _Config(
        "sasl.oauthbearer.allow.unverified.issuer",
        BOOLEAN,
        False,
        "Accepts tokens of any issuer if sasl.oauthbearer.expected.issuer is not set, which is refused otherwise.",
    ),
    _Config("sasl.oauthbearer.scope.claim.name", STRING, "scope", "The claim that has a token's scopes.", importance="low"),
    _Config(
        "sasl.oauthbearer.sub.claim.name",
        STRING,
        "sub",
        "The claim that has the name of the token's principal.",
        importance="low",
    ),
)
SASL_SECTIONS = (("SASL", SASL),)


DELEGATION_TOKENS = (
    _Config(
        "delegation.token.secret.key",
        PASSWORD,
        None,
        "The key that makes and checks delegation tokens. Use the same key on all brokers and controllers. Unset: no delegation "
        "tokens.",
    ),
    _Config(
        "delegation.token.max.lifetime.ms",
        LONG,
        604800000,
        "How long after its creation a delegation token can be renewed. A client may ask for less.",
        AtLeast(1),
    ),
    _Config(
        "delegation.token.expiry.time.ms",
        LONG,
        86400000,
        "How long a delegation token is valid after its creation or its last renewal.",
        AtLeast(1),
    ),
    _Config(
        "delegation.token.expiry.check.interval.ms",
        LONG,
        3600000,
        "How often expired delegation tokens are removed.",
        AtLeast(1),
        "low",
    ),
)
TOKEN_SECTIONS = (("Delegation tokens", DELEGATION_TOKENS),)


STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_SHORT = "StandardAuthorizer"


class _Authorizer(OneOf):
    """The one authorizer, by either of its names, or none."""

    def __init__(self) -> None:
        super().__init__("", STANDARD_AUTHORIZER, _SHORT)
        self.allowed = f"{STANDARD_AUTHORIZER}, {_SHORT}, or empty for none"


class Principals:
    """Principals, ``Type:name``, separated by semicolons."""

    __slots__ = ("allowed",)

    def __init__(self) -> None:
        self.allowed = "principals as User:alice, separated by semicolons"

    def __call__(self, value: str) -> str | None:
        """Return the first entry that is no principal."""
        return next((each for each in principals(value) if ":" not in each), None)


def principals(value: str) -> tuple[str, ...]:
    """Return the principals in a value."""
    return tuple(each.strip() for each in value.split(";") if each.strip())


AUTHORIZATION = (
    ConfigDefinition(
        "authorizer.class.name",
        STRING,
        "",
        "The authorizer: Kafka's StandardAuthorizer, by its full name or as StandardAuthorizer. Empty: everybody may do "
        "everything.",
        _Authorizer(),
        "low",
    ),
    ConfigDefinition(
        "super.users",
        STRING,
        "",
        "Principals that may do everything, as User:alice;User:bob.",
        Principals(),
    ),
    ConfigDefinition(
        "allow.everyone.if.no.acl.found",
        BOOLEAN,
        False,
        "Lets everybody do everything to a resource that has no ACL.",
    ),
)
AUTHORIZER_SECTIONS = (("Authorization", AUTHORIZATION),)


PROTOCOLS = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
_STORES = OneOf("JKS", "PKCS12", "PEM")

SSL = (
    _Config(
        "ssl.keystore.type",
        STRING,
        "JKS",
        "The format of the key store. As in Java, JKS also takes a PKCS12 file, and PKCS12 a JKS file. If a file has several "
        "keys, the broker uses the first.",
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
        "The password of the private key. JKS: the store's password if unset. PKCS12: always the store's password.",
    ),
    _Config("ssl.keystore.key", PASSWORD, None, "The private key itself, as PEM, instead of a file."),
    _Config("ssl.keystore.certificate.chain", PASSWORD, None, "The certificate chain itself, as PEM, instead of a file."),
    _Config("ssl.truststore.type", STRING, "JKS", "The format of the trust store. See ssl.keystore.type.", _STORES),
    _Config(
        "ssl.truststore.location",
        STRING,
        None,
        "The file with the trusted certificates. Unset: the system's trusted certificates.",
    ),
    _Config(
        "ssl.truststore.password",
        PASSWORD,
        None,
        "The password of the trust store; not for PEM. PKCS12 needs one. JKS works without one, but then the store's integrity "
        "is not checked.",
    ),
    _Config("ssl.truststore.certificates", PASSWORD, None, "The trusted certificates themselves, as PEM, instead of a file."),
    _Config(
        "ssl.client.auth",
        STRING,
        "none",
        "Client certificates: required, requested (a client may show one) or none (the broker does not ask).",
        OneOf("required", "requested", "none"),
    ),
    _Config(
        "ssl.enabled.protocols",
        LIST,
        ("TLSv1.2", "TLSv1.3"),
        "The TLS versions the broker speaks. OpenSSL may still refuse versions below 1.2.",
        Entries(*PROTOCOLS, least=1),
    ),
    _Config(
        "ssl.protocol",
        STRING,
        "TLSv1.3",
        "The version of Java's SSLContext.",
        OneOf("TLS", *PROTOCOLS),
        unused_reason="ssl.enabled.protocols decides, as on Kafka's brokers",
    ),
    _Config(
        "ssl.cipher.suites",
        LIST,
        (),
        "The cipher suites, by standard name (as in Kafka) or OpenSSL name. Empty: OpenSSL's choice. The suites of TLS 1.3 are "
        "allowed all together or not at all.",
        Entries(),
    ),
    _Config(
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        "Rules that turn the distinguished name of a client's certificate into its principal: DEFAULT, or "
        "RULE:pattern/replacement/[LU], separated by commas. The first match applies.",
        None,
        "low",
    ),
    _Config(
        "ssl.allow.dn.changes",
        BOOLEAN,
        False,
        "Lets a key store loaded while the broker runs have a certificate with another subject.",
        None,
        "low",
    ),
    _Config(
        "ssl.allow.san.changes",
        BOOLEAN,
        False,
        "Lets a key store loaded while the broker runs have a certificate that lacks hosts, or other alternative names, of the "
        "former one.",
        None,
        "low",
    ),
    _Config(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        "https: a broker that connects to another checks that the certificate is for that host. Empty: no check.",
        OneOf("https", ""),
        "low",
    ),
)
SSL_NAMES = frozenset(row.name for row in SSL)
SSL_SECTIONS = (("TLS", SSL),)
