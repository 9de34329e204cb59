"""The views of the cluster as a whole: its transactions, its brokers and quorum, the pipeline's findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.page.facts.cluster import cluster
from odradek.page.facts.findings import findings
from odradek.page.facts.transactions import transactions
from odradek.page.views import View

if TYPE_CHECKING:
    from odradek.page.views import Call


async def load_transactions(call: Call) -> dict[str, Any]:
    """Return the values of the template. Raises FactError."""
    return {"found": await transactions(call.source)}


async def load_cluster(call: Call) -> dict[str, Any]:
    """Return the values of the template. Raises FactError."""
    return {"found": await cluster(call.source)}


async def load_findings(call: Call) -> dict[str, Any]:
    """Return the values of the template. Raises FactError."""
    return {"found": await findings(call.source)}


TRANSACTIONS = View("transactions", load_transactions)
CLUSTER = View("cluster", load_cluster)
FINDINGS = View("findings", load_findings)
