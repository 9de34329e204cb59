"""What a history ends with that did not go well."""


class Violation(Exception):
    """``invariant`` does not hold: ``what`` happened."""

    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(invariant, what)
        self.invariant = invariant
        self.what = what

    def __str__(self) -> str:
        return f"{self.invariant}: {self.what}"
