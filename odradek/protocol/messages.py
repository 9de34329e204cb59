"""The canonical messages: one class per API and struct, whatever version a client speaks.

A canonical class has the fields of the newest version, and those few that only older versions have and the broker still honours.
It is a named tuple: nobody can write to a message, so one may be answered to many. Every field has Kafka's default, so a handler
names only what it means to say. Values are plain: ``int``, ``str``, ``bytes``, sequences, ``uuid.UUID | None`` (None is the zero
id), milliseconds for durations and times. Arrays of a message that was decoded are tuples.

The classes are in ``odradek.protocol.message_types``, a module an API, where type checkers see them; a module is imported with
the handler that needs it. ``messages(ApiKey.METADATA)`` gives them to what works for any API: the codecs, dispatch, tests.
"""

from collections import namedtuple
from importlib import import_module
from typing import Any

from odradek.protocol.api_keys import ApiKey


class Messages:
    """The canonical classes of one API; ``request`` and ``response`` are the two at the top.

    The classes are attributes under their schema names. Where a request and a response use one name for two structs
    (DescribeQuorum's ``PartitionData``), the attribute is the response's; ``classes`` keeps the two apart.
    """

    def __init__(self, api_key: ApiKey) -> None:
        module = import_module(f"odradek.protocol.message_types.{api_key.name.lower()}")
        self.classes: dict[str, dict[str, type[Any]]] = {"request": module.REQUEST, "response": module.RESPONSE}
        # A struct stands behind those that it holds, and so the message itself at the end.
        self.request: type[Any] = next(reversed(module.REQUEST.values()))
        self.response: type[Any] = next(reversed(module.RESPONSE.values()))

    def __getattr__(self, name: str) -> Any:
        """The class of that schema name, kept as a plain attribute from then on."""
        for classes in (self.classes["response"], self.classes["request"]):
            if name in classes:
                setattr(self, name, classes[name])
                return classes[name]
        raise AttributeError(f"no message class {name!r} here; there are {self.classes}")


def make_class(name: str, defaults: dict[str, object]) -> type[Any]:
    """A named tuple with these defaults, for a struct of kio's that no canonical class stands for."""
    return namedtuple(name, defaults, defaults=defaults.values())  # noqa: PYI024  made at run time


_messages: dict[ApiKey, Messages] = {}


def messages(api_key: ApiKey) -> Messages:
    """The canonical classes of an API."""
    known = _messages.get(api_key)
    if known is None:
        known = _messages[api_key] = Messages(api_key)
    return known
