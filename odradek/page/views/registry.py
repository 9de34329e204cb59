"""All views, by name."""

from typing import Final

from odradek.page.views import View
from odradek.page.views.cluster_views import CLUSTER, FINDINGS, TRANSACTIONS
from odradek.page.views.group import GROUP
from odradek.page.views.levers import LEVERS
from odradek.page.views.overview import OVERVIEW
from odradek.page.views.requests import EXCHANGE, REQUESTS
from odradek.page.views.topic import RECORD, TOPIC, TOPIC_CONFIGS, TOPIC_LOG

_ALL: Final = (
    OVERVIEW,
    TOPIC,
    TOPIC_LOG,
    TOPIC_CONFIGS,
    RECORD,
    GROUP,
    TRANSACTIONS,
    REQUESTS,
    EXCHANGE,
    LEVERS,
    CLUSTER,
    FINDINGS,
)
VIEWS: Final[dict[str, View]] = {view.name: view for view in _ALL}
