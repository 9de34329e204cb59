"""Errors that stop a job. Each has one line of text that names the remedy; no stack trace is needed."""

import re

_CAUSE = re.compile(r"^(?:Caused by: |: )?([\w.]*(?:Error|Exception): .+)$", re.MULTILINE)


class PipelineError(Exception):
    """One line: the fault, and its remedy."""


class Unreachable(PipelineError):
    """The cluster did not answer. A repeating job retries."""


class NoRecords(PipelineError):
    """The cluster has none of the topics yet. The first group or transaction creates them."""


def root_cause(failure: BaseException | str) -> str:
    """Return the innermost cause in nested stack traces of Python and Java, in one line."""
    text = str(failure).strip() or type(failure).__name__
    causes = _CAUSE.findall(text)
    line = causes[-1] if causes else text.partition("\n")[0].rpartition(" terminated with exception: ")[2]
    return " ".join(line.split())
