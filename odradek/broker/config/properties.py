"""``server.properties``, whose mistakes are a configuration's."""

from odradek import properties
from odradek.broker.config.definitions import InvalidConfig


def parse_properties(text: str) -> dict[str, str]:
    r"""The keys and values in ``text``; the last of equal keys. Raises InvalidConfig for a ``\u`` without four digits."""
    try:
        return properties.parse_properties(text)
    except properties.MalformedEscape as error:
        raise InvalidConfig("a \\u escape", str(error), "followed by four hexadecimal digits") from error
