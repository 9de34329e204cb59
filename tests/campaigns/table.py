"""The campaigns: programs that take minutes, each with a short form that is among the tests."""

from typing import NamedTuple


class Campaign(NamedTuple):
    """One program. ``takes_min`` is wall time with its default arguments on two cores, in minutes."""

    name: str
    module: str
    arguments: tuple[str, ...]
    takes_min: float
    what: str
    # Tests, relative to the repository. Empty for a program that measures and checks nothing.
    short: tuple[str, ...]


_HERE = "tests/campaigns"
CAMPAIGNS = {
    campaign.name: campaign
    for campaign in (
        Campaign(
            "acl-differential",
            "tests.campaigns.acl_differential",
            ("--sets", "5000"),
            25,
            "access control lists to odradek and to Apache Kafka, to authorizers and to whole brokers, and what differs",
            (f"{_HERE}/acl_differential/test_acl_differential.py",),
        ),
        Campaign(
            "assignor-differential",
            "tests.campaigns.assignor_differential",
            ("--inputs", "20000"),
            2,
            "histories of groups to odradek's assignors and to Apache Kafka's, and what differs; find faults put in",
            (f"{_HERE}/assignor_differential/test_assignor_differential.py",),
        ),
        Campaign(
            "client-replay",
            "tests.campaigns.client_replay",
            (),
            1,
            "a recorded session of each client library, sent to odradek and Apache Kafka, and what differs without a name",
            (f"{_HERE}/client_replay/test_client_replay.py",),
        ),
        Campaign(
            "cluster-chaos",
            "tests.campaigns.cluster_chaos",
            (),
            12,
            "kill, freeze, stop and cut off brokers of a cluster, and its controller, under transactional clients: with Apache "
            "Kafka's controller and with odradek's; find faults put in",
            (f"{_HERE}/cluster_chaos/test_cluster_chaos.py", f"{_HERE}/cluster_chaos/test_network.py"),
        ),
        Campaign(
            "controller-differential",
            "tests.campaigns.controller_differential",
            (),
            10,
            "the same registrations, heartbeats, elections and reassignments to odradek's and Apache Kafka's controller, and "
            "what differs",
            (f"{_HERE}/controller_differential/test_controller_differential.py",),
        ),
        Campaign(
            "crash",
            "tests.campaigns.crash.kill9_groups",
            ("--kills", "20"),
            4,
            "kill -9 the broker under four rebalancing groups of real clients, one of the consumer protocol",
            (
                f"{_HERE}/crash/test_directory_removed.py",
                f"{_HERE}/crash/test_kill9_groups.py",
                f"{_HERE}/crash/test_kill9_metadata.py",
                f"{_HERE}/crash/test_kill9_produce.py",
                f"{_HERE}/crash/test_log_recovery.py",
                f"{_HERE}/crash/test_stop_and_damage.py",
            ),
        ),
        Campaign(
            "crash-points",
            "tests.campaigns.crash.crash_points",
            (),
            5,
            "kill the broker at each named point of a transaction, and check what the next start finishes",
            (f"{_HERE}/crash/test_points.py", f"{_HERE}/crash/test_points_are_reached.py"),
        ),
        Campaign(
            "crash-topics",
            "tests.campaigns.crash.kill9_topics",
            ("--kills", "30"),
            2,
            "kill -9 the broker while topics are made and deleted under pattern consumers, then read all that was acknowledged",
            (f"{_HERE}/crash/test_kill9_topics.py",),
        ),
        Campaign(
            "damage",
            "tests.campaigns.damage",
            (),
            3,
            "remove, empty, cut and swap every file of a data directory: each damage is found and named, or does no harm",
            (f"{_HERE}/damage/test_damage.py",),
        ),
        Campaign(
            "faults-fuzz",
            "tests.campaigns.faults",
            (),
            12,
            "random sets of injected faults against working clients: the broker serves on after each, nothing acknowledged is "
            "lost",
            (f"{_HERE}/faults/test_faults.py",),
        ),
        Campaign(
            "fuzz",
            "tests.campaigns.fuzz",
            (),
            4,
            "1,000,000 spoilt frames through protocol/, 20,000 through a live socket",
            (f"{_HERE}/fuzz/test_protocol_fuzz.py", f"{_HERE}/fuzz/test_socket_fuzz.py"),
        ),
        Campaign(
            "growing-out",
            "tests.campaigns.growing_out",
            (),
            4,
            "from odradek to Apache Kafka and back, on one data directory and without a stop, under clients that stay",
            (f"{_HERE}/growing_out/test_growing_out.py",),
        ),
        Campaign(
            "hostile-requests",
            "tests.campaigns.hostile_requests",
            ("--requests", "1000"),
            12,
            "huge, lying and laborious requests, small ones with large answers, floods and slow readers: how long a second "
            "client waits, and what memory the broker takes and keeps; find faults put in",
            (f"{_HERE}/hostile_requests/test_hostile_requests.py",),
        ),
        Campaign(
            "kafka-files",
            "tests.campaigns.kafka_tools.both_ways",
            (),
            8,
            "odradek's files read by Apache Kafka's tools, and the reverse; the same logs compacted by both, old formats served",
            (
                f"{_HERE}/kafka_tools/test_client.py",
                f"{_HERE}/kafka_tools/test_dump_log_segments.py",
                f"{_HERE}/kafka_tools/test_legacy_formats.py",
            ),
        ),
        Campaign(
            "image-steps",
            "tests.campaigns.image_steps",
            (),
            30,
            "each step of the Dockerfile in a clean root, then the broker and the Spark job of the compose file; needs root",
            (f"{_HERE}/image_steps/test_image_steps.py",),
        ),
        Campaign(
            "mixed-clusters",
            "tests.campaigns.mixed_clusters",
            (),
            8,
            "brokers of odradek and Apache Kafka lead and follow one another, die, diverge and move; replicas stay the same",
            ("tests/broker/cluster/test_kafka_member.py", f"{_HERE}/mixed_clusters/test_comparison.py"),
        ),
        Campaign(
            "pipeline-bench",
            "benchmarks.pipeline",
            ("--records", "1000000"),
            5,
            "measure the pipeline over a synthetic history, on one core and on two",
            (),
        ),
        Campaign(
            "pipeline-cluster",
            "tests.campaigns.pipeline_cluster",
            (),
            4,
            "the pipeline's tables from a Spark cluster of a master and two workers, byte for byte those of one process",
            (f"{_HERE}/pipeline_cluster/test_pipeline_cluster.py",),
        ),
        Campaign(
            "pipeline-differential",
            "tests.campaigns.pipeline_differential",
            (),
            4,
            "the pipeline's tables against what odradek and Apache Kafka answer, and against Kafka's own formatters",
            ("tests/pipeline/test_differential.py",),
        ),
        Campaign(
            "pipeline-kills",
            "tests.campaigns.pipeline_kills",
            ("--kills", "10"),
            8,
            "kill -9 the pipeline's jobs, and the broker under them; compare their tables with an undisturbed run's",
            ("tests/pipeline/test_kill_ingest.py",),
        ),
        Campaign(
            "power-loss",
            "tests.campaigns.power_loss",
            (),
            25,
            "lose the power, kill the broker and fail the disk while clients and threads write; "
            "flip every bit of a small log; find faults put in",
            (f"{_HERE}/power_loss/test_power_loss.py",),
        ),
        Campaign(
            "quota-differential",
            "tests.campaigns.quota_differential",
            (),
            6,
            "quota managers and throttled clients of odradek and of Apache Kafka, and what differs; find faults put in",
            (f"{_HERE}/quota_differential/test_quota_differential.py",),
        ),
        Campaign(
            "rolling-groups",
            "tests.campaigns.rolling_groups",
            (),
            2,
            "replace the 20 members of a live group by ones of the consumer protocol and back, one by one; find faults put in",
            (f"{_HERE}/rolling_groups/test_rolling_groups.py",),
        ),
        Campaign(
            "sasl-clusters",
            "tests.campaigns.sasl_clusters",
            (),
            14,
            "brokers of odradek and Apache Kafka log in at each other and at a controller of either, by each mechanism, in the "
            "clear and by TLS",
            (f"{_HERE}/sasl_clusters/test_sasl_clusters.py",),
        ),
        Campaign(
            "sasl-differential",
            "tests.campaigns.sasl_differential",
            (),
            5,
            "what SASL listeners of odradek and Apache Kafka say to the same frames, and to six clients with right and wrong "
            "credentials",
            (f"{_HERE}/sasl_differential/test_sasl_differential.py",),
        ),
        Campaign(
            "security-fuzz",
            "tests.campaigns.security_fuzz",
            (),
            9,
            "1,000,000 odd SASL frames and TLS records, 10,000 half-open handshakes at once, and a search for secrets",
            (f"{_HERE}/security_fuzz/test_security_fuzz.py",),
        ),
        Campaign(
            "simulate",
            "tests.campaigns.simulation",
            ("--seeds", "20000", "--jobs", "2"),
            11,
            "histories of consumer groups and as many of transactions on a virtual clock, each from its seed",
            (
                f"{_HERE}/simulation/test_groups.py",
                f"{_HERE}/simulation/test_repeating.py",
                f"{_HERE}/simulation/test_transactions.py",
            ),
        ),
        Campaign(
            "simulate-cluster",
            "tests.campaigns.cluster_simulation",
            ("--seeds", "20000", "--jobs", "2", "--mutations", "600"),
            75,
            "histories of clusters of brokers and their controller, on a virtual clock, network and disks, each from its seed; "
            "find faults put in",
            (
                f"{_HERE}/cluster_simulation/test_histories.py",
                f"{_HERE}/cluster_simulation/test_mutations.py",
                f"{_HERE}/cluster_simulation/test_world_parts.py",
            ),
        ),
        Campaign(
            "simulate-consumer-groups",
            "tests.campaigns.simulation.consumer_groups",
            ("--seeds", "20000", "--jobs", "2", "--mutations", "1500"),
            12,
            "histories of groups of the consumer protocol, with members that roll over and topics that come and go, each from "
            "its seed; find faults put in",
            (f"{_HERE}/simulation/test_consumer_groups.py",),
        ),
        Campaign(
            "soak",
            "tests.campaigns.soak",
            ("--minutes", "5"),
            6,
            "a bank of transactional clients, on small segments: kill -9 or freeze them and the broker, and check that money is "
            "conserved; the same on Apache Kafka; find faults put in",
            (
                f"{_HERE}/soak/test_bank.py",
                f"{_HERE}/soak/test_books.py",
                f"{_HERE}/soak/test_patience.py",
                f"{_HERE}/soak/test_segments.py",
            ),
        ),
        Campaign(
            "wire-differential",
            "tests.campaigns.wire_differential",
            (),
            8,
            "the same requests to odradek and to Apache Kafka, in every API and version, and what differs without a name",
            (
                f"{_HERE}/wire_differential/test_group_migration.py",
                f"{_HERE}/wire_differential/test_wire_differential.py",
            ),
        ),
        Campaign(
            "year",
            "tests.campaigns.year",
            ("--years", "1"),
            1,
            "a broker's year of retention, compaction and expiry on a virtual clock: nothing it keeps grows for ever",
            (f"{_HERE}/year/test_year.py",),
        ),
    )
}
SHORT_TESTS = tuple(test for campaign in CAMPAIGNS.values() for test in campaign.short)
