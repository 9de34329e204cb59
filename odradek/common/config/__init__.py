"""Configuration: the table of all configs, server.properties, and dynamic overrides.

``definitions`` has the type of a table row, and the checks of values. ``table_*`` have the rows. ``broker_config`` holds the
broker's configs, ``checks`` checks them together, ``topic_config`` derives a topic's. ``dynamic`` applies the overrides of the
metadata log on top, and ``metadata.alterations`` decides on changes to these. ``describe`` makes the answers for clients, and
``document`` writes docs/configuration.md. Names, types, defaults and limits are Apache Kafka 4.4's. Where a default differs, its
row gives the reason.
"""

from odradek.common.config.broker_config import BrokerConfig, InvalidConfig, load

__all__ = ["BrokerConfig", "InvalidConfig", "load"]
