"""What came of a move from some brokers to others."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class MovedFound:
    """``partitions`` were moved, ``brokers`` stopped and unregistered, ``things`` found again at the other broker."""

    under: str
    partitions: int = 0
    brokers: int = 0
    things: int = 0
    live: str = ""
    differences: list[str] = field(default_factory=list)

    def report(self) -> str:
        """One line."""
        again = f", {self.things} things found again" if self.things else ""
        return (
            f"without a stop, under {self.under}: {self.partitions} partitions moved, {self.brokers} brokers stopped and "
            f"unregistered{again}; {self.live}"
        )
