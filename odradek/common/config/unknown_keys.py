"""The warning for a key in server.properties that has no effect. Imported only if there is such a key."""

import difflib
from collections.abc import Collection, Iterable, Iterator

from odradek.common.config.ignored import IGNORED
from odradek.common.config.listener_config import PREFIX, is_config_of_listeners, is_listener_config, is_sasl_key, sets_sasl_of
from odradek.common.config.table import BROKER_CONFIGS, TOPIC_CONFIGS


def warnings(names: Iterable[str], listeners: Collection[str]) -> Iterator[str]:
    """Yield the warnings for those ``names``, unknown to the broker, that no listener in ``listeners`` uses either."""
    return (warning(name) for name in names if not (is_config_of_listeners(name, listeners) or sets_sasl_of(name, listeners)))


def warning(name: str) -> str:
    """Return one line: ``name`` is ignored, the reason, and the config that may have been meant."""
    ignored = IGNORED.get(name)
    if ignored is not None:
        return f"{name} is ignored: {ignored.reason}"
    if name.startswith(PREFIX):
        if is_listener_config(name) or is_sasl_key(name):
            return f"{name} is ignored: there is no listener with this name; write it in lower case here"
        return f"{name} is ignored: this config cannot be set for one listener"
    topic_config = TOPIC_CONFIGS.get(name)
    if topic_config is not None and topic_config.server_default is not None:
        return f"{name} is ignored: it is set on a topic; the broker's default for it is {topic_config.server_default}"
    nearest = difflib.get_close_matches(name, [*BROKER_CONFIGS, *IGNORED], n=1)
    return f"{name} is ignored: there is no such config" + (f"; did you mean {nearest[0]}?" if nearest else "")
