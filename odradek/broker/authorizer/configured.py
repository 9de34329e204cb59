"""The authorizer that a configuration asks for."""

from typing import TYPE_CHECKING

from odradek.broker.config.broker_config import BrokerConfig

if TYPE_CHECKING:
    from odradek.broker.authorizer.access import Authorization
    from odradek.timing.clock import Clock


def authorization(config: BrokerConfig, clock: "Clock") -> "Authorization | None":
    """What ``authorizer.class.name`` names; None where there is none."""
    if not config["authorizer.class.name"]:
        return None
    from odradek.broker.authorizer.access import Authorization
    from odradek.broker.authorizer.standard_authorizer import StandardAuthorizer
    from odradek.broker.config.table_authorizer import principals
    from odradek.broker.line_limit import LineLimit

    authorizer = StandardAuthorizer(
        principals(config["super.users"]), allows_without_acls=config["allow.everyone.if.no.acl.found"]
    )
    return Authorization(authorizer, LineLimit(clock))
