"""What keeps a broker from its cluster."""


class MembershipLost(Exception):
    """The broker cannot become, or stay, a member of its cluster; one line says why."""
