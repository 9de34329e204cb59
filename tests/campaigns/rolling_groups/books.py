"""What the members of a group had and did, as they tell it themselves, and what of it must not be.

lost       a record that was written, and that no member processed
doubled    a record that was processed twice
two owners a partition that was assigned to a member before another had given it up
"""

from collections import Counter


class Books:
    """Of one group. Each number written is one record; members are told apart by name."""

    def __init__(self) -> None:
        self.owners: dict[int, str] = {}
        self.processed: Counter[int] = Counter()
        self.two_owners: list[str] = []
        self.assignments = 0

    def assigned(self, member: str, partitions: list[int]) -> None:
        """A member has these partitions from now on."""
        for partition in partitions:
            self.assignments += 1
            owner = self.owners.get(partition)
            if owner not in (None, member):
                self.two_owners.append(f"partition {partition} is {member}'s, and {owner} has not given it up")
            self.owners[partition] = member

    def given_up(self, member: str, partitions: list[int]) -> None:
        """A member has committed what it processed of these partitions, and will read no more of them."""
        for partition in partitions:
            if self.owners.get(partition) == member:
                del self.owners[partition]

    def violations(self, written: int) -> list[str]:
        """All that must not be, once everything written had time to be processed."""
        lost = [number for number in range(written) if not self.processed[number]]
        doubled = [number for number, times in sorted(self.processed.items()) if times > 1]
        return [
            *(f"record {number} is lost" for number in lost),
            *(f"record {number} is doubled" for number in doubled),
            *self.two_owners,
        ]
