"""Rules for the source of compiled modules, which mypyc takes in another sense than the interpreter.

It evaluates the types of a tuple's or dataclass's fields at run time, unless they are in quotes. It makes a plain property of a
``cached_property``.
"""

import __future__

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
