"""Scenario files: what is asked of a coordinator, and all that comes of it.

A file is blocks with an empty line between them. A block is commands, ``----``, and their output. In a block of several commands
each that gave something is repeated as ``> command`` before its lines. Lines that begin with ``#`` are for the reader. With
``--rewrite`` pytest writes the files anew instead of comparing them: read the difference.
"""

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_RULE = "----"


def rerun(text, run):
    """The file as it should be: its commands, and the lines that ``run`` gives for each."""
    blocks = []
    for block in text.strip().split("\n\n"):
        script, _, _ = block.partition(f"\n{_RULE}")
        commands = [line for line in script.splitlines() if line and not line.startswith("#")]
        output = []
        for command in commands:
            lines = run(command)
            output += [f"> {command}", *lines] if lines and len(commands) > 1 else lines
        blocks.append("\n".join([script, _RULE, *output]) if commands else script)
    return "\n\n".join(blocks) + "\n"


def check(path, run, config):
    """Compare a file with what comes of it today, or rewrite it."""
    expected = path.read_text(encoding="utf-8")
    actual = rerun(expected, run)
    if config.getoption("--rewrite"):
        path.write_text(actual, encoding="utf-8")
    else:
        assert actual == expected


def duration_ms(text):
    """Milliseconds of ``500ms``, ``3s``, ``5m``, ``2h`` or ``7d``."""
    number = text.rstrip("mshd")
    return int(number) * _UNITS_MS[text.removeprefix(number)]
