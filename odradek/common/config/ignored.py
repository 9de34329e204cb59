"""Broker configs of Kafka 4.4 that odradek ignores, by reason.

A server.properties written for Kafka gets a warning for each key without effect. ``*`` marks configs that Kafka can change while
it runs, for one broker or for all; ``+`` those for one broker only. Kafka can change its ``ssl.`` configs for one listener only
(``listener.name.<listener>.ssl...``), so they have no mark here.
"""

from typing import NamedTuple

from odradek.common.config.definitions import CLUSTER_WIDE, PER_BROKER, READ_ONLY


class Ignored(NamedTuple):
    """The reason why a config of Kafka's is ignored, and whether Kafka can change it while it runs."""

    reason: str
    update_mode: str


_BY_REASON = {
    "principals are as Kafka builds them": """
        principal.builder.class+
    """,
    "there is no Kerberos": """
        sasl.kerberos.kinit.cmd+ sasl.kerberos.min.time.before.relogin+ sasl.kerberos.principal.to.local.rules+
        sasl.kerberos.service.name+ sasl.kerberos.ticket.renew.jitter+ sasl.kerberos.ticket.renew.window.factor+
    """,
    "the broker fetches no tokens": """
        sasl.client.callback.handler.class sasl.login.class
        sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds+
        sasl.login.refresh.min.period.seconds+ sasl.login.refresh.window.factor+ sasl.login.refresh.window.jitter+
        sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
        sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
        sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
        sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
        sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
        sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
        sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
        sasl.oauthbearer.client.credentials.client.secret
        sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
    """,
    "TLS is OpenSSL's": """
        security.providers ssl.engine.factory.class ssl.keymanager.algorithm ssl.provider ssl.secure.random.implementation
        ssl.trustmanager.algorithm
    """,
    "there is no remote storage": """
        follower.fetch.last.tiered.offset.enable* remote.fetch.max.wait.ms* remote.list.offsets.request.timeout.ms*
        remote.log.index.file.cache.total.size.bytes* remote.log.index.file.cache.ttl.ms
        remote.log.manager.copier.thread.pool.size* remote.log.manager.copy.max.bytes.per.second*
        remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
        remote.log.manager.expiration.thread.pool.size* remote.log.manager.fetch.max.bytes.per.second*
        remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
        remote.log.manager.follower.thread.pool.size* remote.log.manager.task.interval.ms
        remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
        remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
        remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
        remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks remote.log.reader.threads*
        remote.log.storage.manager.class.name remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
        remote.log.storage.system.enable
    """,
    "the coordinator works on the event loop, and waits for nothing": """
        group.coordinator.append.linger.ms group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes*
        group.coordinator.threads
        share.coordinator.append.linger.ms share.coordinator.cached.buffer.max.bytes* share.coordinator.threads
    """,
    "there are no plugins of share and streams groups, and nothing to purge": """
        group.share.dlq.manager.class.name group.share.persister.class.name group.streams.topology.description.plugin.class
        share.fetch.purgatory.purge.interval.requests
    """,
    "nothing acts on it in a cluster, and a broker alone has no use for it": """
        controlled.shutdown.enable controller.performance.always.log.threshold.ms
        controller.performance.sample.period.ms controller.quorum.append.linger.ms controller.quorum.auto.join.enable
        controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
        controller.quorum.fetch.snapshot.max.bytes
        cordoned.log.dirs+ early.start.listeners internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes
        internal.metadata.max.batch.size.in.bytes log.dir.failure.timeout.ms
        num.replica.alter.log.dirs.threads
        replica.socket.receive.buffer.bytes
        server.max.startup.time.ms socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    """,
    "there is one thread, and disk work has its own": """
        background.threads* num.io.threads* num.network.threads* num.recovery.threads.per.data.dir*
    """,
    "there are no plugins or JMX metrics": """
        alter.config.policy.class.name client.quota.callback.class config.providers* create.topic.policy.class.name
        kafka.metrics.polling.interval.secs kafka.metrics.reporters metric.reporters* metrics.num.samples
        metrics.recording.level metrics.sample.window.ms
        unstable.api.versions.enable unstable.feature.versions.enable
    """,
}

_MODES = {"*": CLUSTER_WIDE, "+": PER_BROKER}

IGNORED: dict[str, Ignored] = {
    name.rstrip("*+"): Ignored(reason, _MODES.get(name[-1], READ_ONLY))
    for reason, names in _BY_REASON.items()
    for name in names.split()
}
