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
# (a case's given name, its arguments, why it failed)
_Failures = list[tuple[str | None, dict[str, Any], BaseException]]


@contextmanager
def case(name: object) -> Iterator[None]:
    """A case of a loop in a test: a failure names it."""
    try:
        yield
    except _FAILED as error:
        error.add_note(f"case: {name}")
        raise


def each_case(
    names: str | Sequence[str], cases: Iterable[Any], *, ids: Callable[[Any], str] | Sequence[str] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Call a test once for each of ``cases``, all in one item. Arguments are as for ``pytest.mark.parametrize``.

    The cases share the test's fixtures.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    rows = [_row(names, each) for each in cases]
    assert rows, "a test of no cases"
    if ids is not None and not callable(ids):
        rows = [(name, arguments) for name, (_, arguments) in zip(ids, rows, strict=True)]
    tell = ids if callable(ids) else _told

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            __tracebackhide__ = True
            failures: _Failures = []
            for name, arguments in rows:
                with _kept(failures, name, arguments):
                    test(*args, **fixtures, **arguments)
            _show(failures, tell)

        @wraps(test)
        async def run_async(*args: Any, **fixtures: Any) -> None:
            __tracebackhide__ = True
            failures: _Failures = []
            for name, arguments in rows:
                with _kept(failures, name, arguments):
                    await test(*args, **fixtures, **arguments)
            _show(failures, tell)

        folded: Callable[..., Any] = run_async if inspect.iscoroutinefunction(test) else run
        signature = inspect.signature(test)
        fixtures = [parameter for name, parameter in signature.parameters.items() if name not in names]
        folded.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return folded

    return decorate


def _row(names: Sequence[str], case: Any) -> tuple[str | None, dict[str, Any]]:
    """The given name and the arguments of a case."""
    is_named = isinstance(case, type(pytest.param()))
    values = case.values if is_named else (case,) if len(names) == 1 else case
    return case.id if is_named else None, dict(zip(names, values, strict=True))


def _told(value: Any) -> str:
    return value.name if isinstance(value, Enum) else repr(value)


@contextmanager
def _kept(failures: _Failures, name: str | None, arguments: dict[str, Any]) -> Iterator[None]:
    try:
        yield
    except _FAILED as error:
        failures.append((name, arguments, error))


def _show(failures: _Failures, tell: Callable[[Any], str]) -> None:
    """Raise the first failure, with the names of all."""
    __tracebackhide__ = True
    if failures:
        told = [name or ", ".join(f"{key}={tell(value)}" for key, value in of.items()) for name, of, _ in failures]
        error = failures[0][-1]
        error.add_note("case: " + "\nalso failed: ".join(each[:_LONGEST_NAME] for each in told))
        raise error
