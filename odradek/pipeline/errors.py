"""What stops a job, told so that it can be mended: in one line, without a stack trace."""

import re

_CAUSE = re.compile(r"^(?:Caused by: )?([\w.]*(?:Error|Exception): .+)$", re.MULTILINE)


class PipelineError(Exception):
    """One line: what is wrong, and what to do about it."""


class Unreachable(PipelineError):
    """The cluster did not answer. It may yet: a job that goes on for ever tries again."""


class NoRecords(PipelineError):
    """The cluster has none of the topics. They come with the first group or transaction."""


def first_line(failure: BaseException) -> str:
    """What an exception of Spark's or Java's says before its stack trace."""
    lines = str(failure).strip().splitlines()
    return " ".join(lines[0].split()) if lines else type(failure).__name__


def root_cause(text: str) -> str:
    """Of stack traces within stack traces, of either language, what the last one is about."""
    causes = _CAUSE.findall(text)
    return " ".join((causes[-1] if causes else text.strip().partition("\n")[0]).split())
