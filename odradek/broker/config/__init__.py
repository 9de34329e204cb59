"""Configuration: the table of every config odradek knows, server.properties, and overrides made while it runs.

``definitions`` says what a config is, ``validators`` what it may hold; ``table_server``, ``table_log`` and ``table_topic`` list
them all. ``broker_config`` reads the static ones, ``checks`` looks at them together, ``topic_config`` derives a topic's.
``dynamic`` lays the overrides of the metadata log over them; ``metadata.alterations`` decides on changes to those. Clients are
told what ``describe`` says, and ``document`` writes docs/configuration.md. Names, types, defaults and limits are Apache Kafka
4.3's; where a default differs, the table says why.
"""

from odradek.broker.config.broker_config import BrokerConfig, InvalidConfig, load

__all__ = ["BrokerConfig", "InvalidConfig", "load"]
