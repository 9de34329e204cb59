"""Many cases in one item, for cases that take microseconds.

``@each_case`` stands where ``@pytest.mark.parametrize`` would. All cases run, whichever of them fails; the failure that is
shown names its case and lists the others. pytest's own ``subtests`` capture output and send a report for each case, which takes
longer than such a case does.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import wraps
from typing import Any

import pytest

_FAILED = (Exception, pytest.fail.Exception)
_LONGEST_NAME = 300


@contextmanager
def case(name: object) -> Iterator[None]:
    """A case of a loop in a test: a failure names it."""
    try:
        yield
    except _FAILED as error:
        error.add_note(f"case: {name}")
        raise


class _Failures:
    """The cases that failed, in order."""

    def __init__(self) -> None:
        self._failures: list[tuple[str, BaseException]] = []

    @contextmanager
    def of(self, case: str) -> Iterator[None]:
        try:
            yield
        except _FAILED as error:
            self._failures.append((case, error))

    def show(self) -> None:
        """Raise the first failure, with the names of all."""
        if self._failures:
            (case, error), *others = self._failures
            error.add_note("\nalso failed: ".join([f"case: {case}", *(other for other, _ in others)]))
            raise error


def each_case(
    names: str | Sequence[str], cases: Iterable[Any], *, ids: Callable[[Any], str] | Sequence[str] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Call a test once for each of ``cases``, all in one item. Arguments are as for ``pytest.mark.parametrize``.

    The cases share the test's fixtures.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    tell = ids if callable(ids) else _told
    rows = [_row(names, each, tell) for each in cases]
    assert rows, "a test of no cases"
    if ids is not None and not callable(ids):
        rows = [(name, values) for name, (_, values) in zip(ids, rows, strict=True)]

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            __tracebackhide__ = True
            failures = _Failures()
            for name, values in rows:
                with failures.of(name):
                    test(*args, **fixtures, **values)
            failures.show()

        @wraps(test)
        async def run_async(*args: Any, **fixtures: Any) -> None:
            __tracebackhide__ = True
            failures = _Failures()
            for name, values in rows:
                with failures.of(name):
                    await test(*args, **fixtures, **values)
            failures.show()

        folded = run_async if inspect.iscoroutinefunction(test) else run
        signature = inspect.signature(test)
        fixtures = [parameter for name, parameter in signature.parameters.items() if name not in names]
        folded.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return folded

    return decorate


def _row(names: Sequence[str], case: Any, tell: Callable[[Any], str]) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of a case."""
    given = None
    if isinstance(case, type(pytest.param())):
        given, values = case.id, case.values
    else:
        values = (case,) if len(names) == 1 else case
    arguments = dict(zip(names, values, strict=True))
    return str(given or ", ".join(f"{name}={tell(value)}" for name, value in arguments.items()))[:_LONGEST_NAME], arguments


def _told(value: Any) -> str:
    return value.name if isinstance(value, Enum) else repr(value)
