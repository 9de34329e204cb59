"""The campaign faults-fuzz for some sets; and the faults that it finds when they are put in."""

from confluent_kafka.admin import AdminClient

from odradek.testing.faults.faults import Faults
from odradek.testing.in_process import InProcessBroker
from tests.campaigns.faults.campaign import _GROUP, Lot, run


def test_the_broker_serves_on_under_random_rules_and_loses_nothing():
    counts = run(seed=21, sets=3)
    assert counts.violations == []
    assert counts.fired
    assert counts.acknowledged


def test_a_rule_that_stays_when_it_is_removed_is_found(monkeypatch):
    monkeypatch.setattr("tests.campaigns.faults.campaign.PATIENCE_S", 0.4)
    monkeypatch.setattr(
        "tests.campaigns.faults.campaign.draw_rule",
        lambda random, loses_power: {"api": ["Produce"], "error": "NOT_ENOUGH_REPLICAS"},
    )
    monkeypatch.setattr(Faults, "_remove", lambda faults, fault: None)
    assert "it does not serve after" in run(seed=1, sets=1).violations[0]


def test_a_record_that_is_lost_by_a_kill_is_found(monkeypatch):
    monkeypatch.setattr("tests.campaigns.faults.campaign.PATIENCE_S", 0.5)
    monkeypatch.setattr(
        "tests.campaigns.faults.campaign.draw_rule",
        lambda random, loses_power: {"point": "Offsets", "restart": "after", "times": 1},
    )
    monkeypatch.setattr(InProcessBroker, "kill", lambda broker: broker.lose_power_for_test())
    monkeypatch.setattr(InProcessBroker, "lose_power_for_test", _lose, raising=False)
    # A commit that comes when its rule is gone already kills nobody.
    assert any(violation.startswith("lost:") for seed in range(10) for violation in run(seed=seed, sets=2).violations)


def test_a_commit_that_is_lost_and_covered_up_by_the_next_is_found(monkeypatch):
    def run_set_without_the_commits(lot):
        admin = AdminClient({"bootstrap.servers": lot._broker.bootstrap_servers})
        if lot._committed:
            admin.delete_consumer_groups([_GROUP])[_GROUP].result()
        run_set(lot)

    run_set = Lot.run_set
    monkeypatch.setattr("tests.campaigns.faults.campaign.draw_rule", lambda random, loses_power: {"api": ["ListGroups"]})
    monkeypatch.setattr(Lot, "run_set", run_set_without_the_commits)
    # Seed 3's second set makes no commit under its rules.
    assert any(violation.startswith("the group is at") for violation in run(seed=3, sets=5).violations)


_kill = InProcessBroker.kill


def _lose(broker):
    """A kill that takes with it what was not synced."""
    _kill(broker)
    broker.disk = broker.disk.after_power_loss()
