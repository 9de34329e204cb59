"""``did you mean``: the known names that a wrong one resembles."""

from collections.abc import Iterable

_MOST = 3
_LIKENESS = 0.6


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean X?``, or "" if no known name resembles the word."""
    from difflib import get_close_matches  # 4 ms, for a wrong name only

    by_lower_case = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), by_lower_case, _MOST, _LIKENESS)
    return f"; did you mean {' or '.join(by_lower_case[name] for name in close)}?" if close else ""
