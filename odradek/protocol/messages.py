"""The canonical messages: one class for each API and struct, the same for all versions.

A canonical class has the fields of the newest version, and the few of older versions that the broker still honors. It is a named
tuple: a message is immutable, so one response may be sent to many clients. Every field has Kafka's default, so a handler names
only the fields it sets. Values are plain: ``int``, ``str``, ``bytes``, sequences, ``uuid.UUID | None`` (None is the zero id),
milliseconds for durations and times. Arrays of a decoded message are tuples.

The classes are in ``odradek.protocol.message_types``, a module for each API, where type checkers see them. A module is imported
with the handler that needs it. Code that works for any API (codecs, dispatch, tests) gets the classes by
``messages(ApiKey.METADATA)``.
"""

from collections import namedtuple
from importlib import import_module
from typing import Any

from odradek.protocol.api_keys import ApiKey


class Messages:
    """The canonical classes of one API; ``request`` and ``response`` are the two messages.

    The classes are attributes under their schema names. If a request and a response use one name for two structs
    (DescribeQuorum's ``PartitionData``), the attribute is the response's; ``classes`` has both.
    """

    def __init__(self, api_key: ApiKey) -> None:
        module = import_module(f"odradek.protocol.message_types.{api_key.name.lower()}")
        self.classes: dict[str, dict[str, type[Any]]] = {"request": module.REQUEST, "response": module.RESPONSE}
        # A struct is defined after its inner structs, so the message itself is the last one.
        self.request: type[Any] = next(reversed(module.REQUEST.values()))
        self.response: type[Any] = next(reversed(module.RESPONSE.values()))

    def __getattr__(self, name: str) -> Any:
        """Return the class with that schema name. It is stored as a plain attribute for later accesses."""
        for classes in (self.classes["response"], self.classes["request"]):
            if name in classes:
                setattr(self, name, classes[name])
                return classes[name]
        raise AttributeError(f"no message class {name!r} here; classes: {self.classes}")


def make_class(name: str, defaults: dict[str, object]) -> type[Any]:
    """Make a named tuple with these defaults, for a struct without a canonical class."""
    return namedtuple(name, defaults, defaults=defaults.values())  # noqa: PYI024  made at run time


_messages: dict[ApiKey, Messages] = {}


def messages(api_key: ApiKey) -> Messages:
    """Return the canonical classes of an API."""
    known = _messages.get(api_key)
    if known is None:
        known = _messages[api_key] = Messages(api_key)
    return known
