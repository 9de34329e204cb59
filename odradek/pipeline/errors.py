"""What stops a job, told so that it can be mended: in one line, without a stack trace."""

import re

_CAUSE = re.compile(r"^(?:Caused by: |: )?([\w.]*(?:Error|Exception): .+)$", re.MULTILINE)


class PipelineError(Exception):
    """One line: what is wrong, and what to do about it."""


class Unreachable(PipelineError):
    """The cluster did not answer. It may yet: a job that goes on for ever tries again."""


class NoRecords(PipelineError):
    """The cluster has none of the topics. They come with the first group or transaction."""


def root_cause(failure: BaseException | str) -> str:
    """Of stack traces within stack traces, of either language, what the last one is about; in one line."""
    text = str(failure).strip() or type(failure).__name__
    causes = _CAUSE.findall(text)
    line = causes[-1] if causes else text.partition("\n")[0].rpartition(" terminated with exception: ")[2]
    return " ".join(line.split())
