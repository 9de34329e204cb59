"""Rules for the source that no linter has.

Nobody takes their own cancellation for that of a task they wait for: ``asyncio.wait`` and ``gather`` tell the two apart.

mypyc takes compiled modules in another sense than the interpreter. It evaluates the types of a tuple's or dataclass's fields at
run time, unless they are in quotes. It makes a plain property of a ``cached_property``. It passes ``*arguments`` to a base's
method as one tuple.
"""

import __future__

import ast
import dataclasses
import inspect
from importlib import import_module

from tests.broker_process import REPOSITORY
from tests.project.test_tools import tool

hook = tool("build_hook")


def _unknown(module):
    """Return the fields of a module's classes whose types are not there."""
    # Without this import, texts are what the source has in quotes.
    if vars(module).get("annotations") is not __future__.annotations:
        return
    for each in list(vars(module).values()):
        if not isinstance(each, type) or each.__module__ != module.__name__:
            continue
        if not hasattr(each, "_fields") and not dataclasses.is_dataclass(each):
            continue
        for field, kind in inspect.get_annotations(each).items():
            text = getattr(kind, "__forward_arg__", kind)
            try:
                eval(text, dict(vars(module))) if isinstance(text, str) else None
            except NameError:
                yield f"{module.__name__}: {each.__name__}.{field}"
            except TypeError:
                # Operators between types and texts, which mypyc does not evaluate.
                continue


def test_the_field_types_of_compiled_classes_are_there_at_run_time():
    modules = [str(path).removesuffix(".py").replace("/", ".") for path in hook.compiled_modules(REPOSITORY)]
    assert [field for name in modules for field in _unknown(import_module(name.removesuffix(".__init__")))] == []


def test_no_compiled_module_has_a_cached_property():
    sources = {path: (REPOSITORY / path).read_text(encoding="utf-8") for path in hook.compiled_modules(REPOSITORY)}
    assert [path for path, source in sources.items() if "cached_property" in source] == []


def _unpacks_for_a_base(source):
    """Return the lines that call a base's method with ``*arguments``: mypyc passes them as one tuple."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super"))), args=[*given]):
                yield from (each.lineno for each in given if isinstance(each, ast.Starred))


def test_no_compiled_module_unpacks_arguments_for_a_base():
    assert list(_unpacks_for_a_base("class A(B):\n def __init__(self, x):\n  super().__init__(1, *x)")) == [3]
    sources = {path: (REPOSITORY / path).read_text(encoding="utf-8") for path in hook.compiled_modules(REPOSITORY)}
    assert {path: found for path, source in sources.items() if (found := list(_unpacks_for_a_base(source)))} == {}


# The restart of a test's broker, not the thread that waits for it, was cancelled: nothing cancels the main task of that thread.
_OF_ANOTHER = {"odradek/testing/broker_thread.py"}


def _swallows_cancellation(source):
    """Return the lines that catch or suppress CancelledError, without raising again."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="suppress"), args=caught):
                is_handled = False
            case ast.ExceptHandler(type=ast.expr() as kind):
                caught = [kind]
                is_handled = any(isinstance(each, ast.Raise) for each in ast.walk(node))
            case _:
                continue
        if not is_handled and any("CancelledError" in ast.unparse(each) for each in caught):
            yield node.lineno


def test_nobody_swallows_their_own_cancellation():
    planted = "try:\n await task\nexcept (OSError, asyncio.CancelledError):\n pass\nwith suppress(CancelledError):\n await task"
    assert sorted(_swallows_cancellation(planted)) == [3, 5]
    sources = {str(path.relative_to(REPOSITORY)): path.read_text() for path in (REPOSITORY / "odradek").rglob("*.py")}
    assert {path for path, source in sources.items() if list(_swallows_cancellation(source))} == _OF_ANOTHER
