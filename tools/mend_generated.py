"""Mends a fault of mypyc 2.4 in the C that it generates, before that is compiled.

mypyc keeps the last freed object of each class of generators, lambdas and their variables for the next use. It offers it before
it has cleared it:

    if (walk_gen_free_instance == NULL) {
        walk_gen_free_instance = self;
        Py_CLEAR(self->file);
        return;
    }

To clear may close a file, which lets another thread run, or run Python code. Who then asks for such an object gets this one, and
loses what it puts in: wrong values, or a segmentation fault. Mended, an object is offered when it is clear.
"""

import re
from pathlib import Path

_REUSE = re.compile(
    r"""
    (?P<test> [ ]*if[ ]\((?P<slot>\w+_free_instance)[ ]==[ ]NULL\)[ ]\{\n)
    [ ]*(?P=slot)[ ]=[ ]self;\n
    (?P<clear> (?:.*\n)*?)
    [ ]*return;\n
    """,
    re.VERBOSE,
)
_CLEAR_FIRST = r"\g<test>\g<clear>if (\g<slot> == NULL) {\n\g<slot> = self;\nreturn;\n}\n"


def clear_before_reuse(code: str) -> str:
    """``code`` of one C file, mended. Raises ValueError where it is not of the form above."""
    mended, count = _REUSE.subn(_CLEAR_FIRST, code)
    if count != code.count("_free_instance = self;"):
        raise ValueError("mypyc frees generators in a way that is not known: see tools/mend_generated.py")
    return mended


def mend(folder: Path) -> None:
    """Mend mypyc's C files below ``folder``."""
    for path in folder.rglob("__native*.c"):
        path.write_text(clear_before_reuse(path.read_text(encoding="utf-8")), encoding="utf-8")
