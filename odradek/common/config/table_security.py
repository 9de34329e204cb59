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
        "The mechanisms by which clients may authenticate: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. There is no GSSAPI: "
        "a SASL listener needs this config, for all or as listener.name.<listener>.sasl.enabled.mechanisms.",
        Entries(),
        update_mode=PER_BROKER,
    ),
    _Config(
        "sasl.jaas.config",
        PASSWORD,
        None,
        "The JAAS line of a mechanism, with its users: listener.name.<listener>.<mechanism>.sasl.jaas.config, each in lower "
        "case. Set without a listener and a mechanism it has no effect, as in Kafka.",
        update_mode=PER_BROKER,
    ),
    _Config(
        "sasl.mechanism.inter.broker.protocol",
        STRING,
        "GSSAPI",
        "The mechanism by which a broker authenticates at the others, where the listener between brokers is one with SASL: "
        "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. It has to be among the listener's sasl.enabled.mechanisms, and the "
        "JAAS line there has to have a username and a password, or for OAUTHBEARER what a token is made of.",
        update_mode=PER_BROKER,
    ),
    _Config(
        "sasl.mechanism.controller.protocol",
        STRING,
        "GSSAPI",
        "The mechanism by which a broker authenticates at controllers, where the first of controller.listener.names is one with "
        "SASL: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. The JAAS line there has to have a username and a password, or "
        "for OAUTHBEARER what a token is made of.",
    ),
    _Config(
        "connections.max.reauth.ms",
        LONG,
        0,
        "A session is over when it is this old, unless its client has authenticated again (KIP-368). 0: it has no end. Can be "
        "set for a mechanism of a listener.",
    ),
    _Config(
        "connection.failed.authentication.delay.ms",
        INT,
        100,
        "A failed authentication is answered, and its connection closed, after this time.",
        AtLeast(0),
        "low",
    ),
    _Config(
        "sasl.server.max.receive.size",
        INT,
        524288,
        "The largest request of a client that has not authenticated.",
    ),
    _Config(
        "sasl.server.callback.handler.class",
        ConfigType.CLASS,
        None,
        "What checks credentials. Of Kafka's classes, a listener's OAUTHBEARER has OAuthBearerValidatorCallbackHandler, the "
        "default here, and OAuthBearerUnsecuredValidatorCallbackHandler, which accepts tokens that nobody has signed.",
    ),
    _Config(
        "sasl.login.callback.handler.class",
        ConfigType.CLASS,
        None,
        "Where the token comes from that this node shows at others by OAUTHBEARER. Of Kafka's classes, a listener has "
        "OAuthBearerLoginCallbackHandler, for a token in a file, and OAuthBearerUnsecuredLoginCallbackHandler, the default, for "
        "one that nobody has signed.",
    ),
    _Config(
        "sasl.oauthbearer.token.endpoint.url",
        STRING,
        None,
        "Where the token is that this node shows at others: a file URL. The file is read for each connection, and before a "
        "session that it has begun is over.",
    ),
    _Config(
        "sasl.oauthbearer.jwks.endpoint.url",
        STRING,
        None,
        "Where the keys are that tokens are signed with: a JWKS document, at an http, https or file URL.",
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
        "How long after a fetch of keys that failed the next one may follow; longer after each.",
        importance="low",
    ),
    _Config(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        LONG,
        10000,
        "The longest of these times.",
        importance="low",
    ),
    _Config(
        "sasl.oauthbearer.clock.skew.seconds",
        INT,
        30,
        "How far the clocks of the broker and of who issues tokens may be apart.",
        importance="low",
    ),
    _Config(
        "sasl.oauthbearer.expected.audience",
        LIST,
        (),
        "A token has to be for one of these (aud). Without it, a token that names an audience is refused.",
        importance="low",
    ),
    _Config("sasl.oauthbearer.expected.issuer", STRING, None, "A token has to be of this issuer (iss).", importance="low"),
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
        "What delegation tokens are made of and checked by: the same at all brokers and controllers. Without it there are no "
        "delegation tokens.",
    ),
    _Config(
        "delegation.token.max.lifetime.ms",
        LONG,
        604800000,
        "How long a delegation token can be renewed, from its creation on. A client may ask for less.",
        AtLeast(1),
    ),
    _Config(
        "delegation.token.expiry.time.ms",
        LONG,
        86400000,
        "How long a delegation token is valid from its creation, or from its last renewal, on.",
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
        "What decides who may do what: Kafka's StandardAuthorizer, by its full name or as StandardAuthorizer. Empty: everybody "
        "may do everything.",
        _Authorizer(),
        "low",
    ),
    ConfigDefinition(
        "super.users",
        STRING,
        "",
        "Principals who may do everything, as User:alice;User:bob.",
        Principals(),
    ),
    ConfigDefinition(
        "allow.everyone.if.no.acl.found",
        BOOLEAN,
        False,
        "Whether everybody may do everything to a resource that no access control list names.",
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
