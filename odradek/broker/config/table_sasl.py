"""The table, part of SASL.

What belongs to one mechanism of one listener is set as ``listener.name.<listener>.<mechanism>.<config>`` (``sasl_config``).
Listeners and mechanisms are in lower case there. Left out: Kerberos, and what it takes to fetch tokens (``ignored``).
"""

from odradek.broker.config.definitions import INT, LIST, LONG, PASSWORD, PER_BROKER, STRING, ConfigDefinition, ConfigType
from odradek.broker.config.validators import AtLeast, Entries

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
