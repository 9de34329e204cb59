"""A broker in memory under a clock that stands still, with clients that ask what they are asked for and push."""

from uuid import UUID

from odradek.common.config.dynamic import ResourceType
from odradek.common.context import RequestContext, Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.protocol.message_types.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from odradek.protocol.message_types.push_telemetry import PushTelemetryRequest
from odradek.timing.reply import Reply
from tests.broker.api.bed import ask, make_broker

INTERVAL_MS = 1_000
# A MetricsData: resource metrics > scope metrics > metric "m" > gauge > a data point of 1.5.
METRICS = bytes.fromhex("0a14 1212 1210 0a016d 2a0b 0a09 21000000000000f83f")


class Client:
    """One client instance, on a connection of its own."""

    def __init__(self, broker, instance_id=7, client_id="app", port=1):
        self.session = Session("PLAINTEXT", ("127.0.0.1", port))
        self.session.client_software_name, self.session.client_software_version = "apache-kafka-java", "4.3.1"
        self.instance_id = None if instance_id is None else UUID(int=instance_id)
        self.subscription_id = 0
        self._broker = broker
        self._client_id = client_id

    def get(self):
        """The answer; its subscription is what is pushed for from then on."""
        answer = self._call(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, GetTelemetrySubscriptionsRequest(self.instance_id))
        if not answer.error_code:
            self.instance_id, self.subscription_id = answer.client_instance_id, answer.subscription_id
        return answer

    def push(self, metrics=METRICS, **fields):
        """The error code."""
        request = PushTelemetryRequest(self.instance_id, self.subscription_id, metrics=metrics)
        return self._call(ApiKey.PUSH_TELEMETRY, request._replace(**fields)).error_code

    def _call(self, api_key, request):
        answer = self._broker.dispatcher.call(RequestContext(api_key, 0, 7, self._client_id, self.session), request)
        if isinstance(answer, Reply):
            assert answer.done
            answer = answer.response
        return answer


def subscribe(broker, name="all", **configs):
    """Set configs of a subscription, with ``_`` for dots; None removes one. The error code of the answer."""
    told = [
        AlterableConfig(config.replace("_", "."), int(value is None), None if value is None else str(value))
        for config, value in configs.items()
    ]
    resources = [AlterConfigsResource(ResourceType.CLIENT_METRICS, name, told)]
    (answer,) = ask(broker, ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=resources).responses
    return answer.error_code


def subscribed_broker(**overrides):
    """A broker that asks every client for everything."""
    broker = make_broker(**overrides)
    assert not subscribe(broker, metrics="*", interval_ms=INTERVAL_MS)
    return broker
