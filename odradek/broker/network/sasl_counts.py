"""What came of authentications by SASL, as Kafka counts them: plain numbers, read when somebody looks."""


class SaslCounts:
    """Since the broker started. ``expired`` sessions were not renewed; ``..._again`` are renewals of sessions (KIP-368)."""

    __slots__ = ("expired", "failed", "failed_again", "succeeded", "succeeded_again")

    def __init__(self) -> None:
        self.succeeded = 0
        self.failed = 0
        self.succeeded_again = 0
        self.failed_again = 0
        self.expired = 0
