"""Each order gets one invoice, whatever happens in between: offsets and invoices are one transaction."""

import json

from confluent_kafka import Consumer, Producer

GROUP = "billing"
_READ_S = 5.0
_TIMEOUT_S = 10.0


class Billing:
    """Bills orders in transactions of ``transactional_id``. Whoever has the same one after it has it alone."""

    def __init__(self, bootstrap_servers: str, transactional_id: str = "billing") -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": transactional_id})
        self._producer.init_transactions(_TIMEOUT_S)
        self._consumer.subscribe(["placed"])

    def bill(self, count: int, *, commit: bool = True) -> int:
        """Bill the next ``count`` orders, or as many as there are; how many. Without ``commit``, the transaction stays open."""
        orders = self._consumer.consume(count, _READ_S)
        self._producer.begin_transaction()
        for order in orders:
            total = json.loads(order.value())["total"]
            self._producer.produce("invoices", json.dumps({"due": total}).encode(), key=order.key())
        if commit:
            places = self._consumer.position(self._consumer.assignment())
            self._producer.send_offsets_to_transaction(places, self._consumer.consumer_group_metadata(), _TIMEOUT_S)
            self._producer.commit_transaction(_TIMEOUT_S)
        else:
            self._producer.flush(_TIMEOUT_S)
        return len(orders)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
