"""The table, fifth part: the configs of the authorizer."""

from odradek.broker.config.definitions import BOOLEAN, STRING, ConfigDefinition
from odradek.broker.config.validators import OneOf

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
        """The first that is no principal."""
        return next((each for each in principals(value) if ":" not in each), None)


def principals(value: str) -> tuple[str, ...]:
    """The principals in a value."""
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
