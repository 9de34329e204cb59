"""How a message is shown that has secrets in it: tokens, salts, salted passwords."""

from typing import Any


def shown(message: Any, *hidden: str) -> str:
    """What ``repr`` says of a named tuple, without the values of the fields ``hidden``."""
    values = message._asdict().items()
    return f"{type(message).__name__}({', '.join(f'{n}=[hidden]' if n in hidden else f'{n}={value!r}' for n, value in values)})"
