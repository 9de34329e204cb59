"""Repeated kill -9 of the broker, at random moments, under two instances of a Kafka Streams application in one streams group.

The application joins orders with a table and sums them up, under exactly-once (``tests/clients/streams``). Orders are produced
all the time, so each kill falls into a transaction or into changes of the state. Before every third kill, an instance joins or
leaves. After each kill:

    no order lost or doubled    the sums are those of all orders, and no sum went back

In the end:

    no group stuck              all instances run their tasks
    no instance fails           each leaves in good order

With ``--brokers 3`` each kill is of one broker of a cluster, in turn, and the others take over what it led.

    python -m tests.campaigns.crash.kill9_streams --kills 10
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import kafka_jars
from tests.campaigns.crash.support import run_with_kills, seeded
from tests.campaigns.crash.three_brokers import ThreeBrokers
from tests.clients.streams.application import SETTINGS, Application, compiled, wait_until_running

if TYPE_CHECKING:
    import random

    from tests.broker_process import BrokerProcess
    from tests.clients.streams.application import Instance

LONGEST_WAIT_FOR_KILL_S = 1.0
_ORDERS = 400
_EVERY_JOIN_OR_LEAVE = 3


def kill_under_streams(broker: BrokerProcess | ThreeBrokers, rng: random.Random, kills: int) -> Application:
    """Run all kills on a running broker. Returns the application when all checks have held."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        states = scratch / "states"
        states.mkdir()
        replicas = 3 if isinstance(broker, ThreeBrokers) else 1
        command = compiled(scratch, kafka_jars.VERSION)
        sums = Application(broker.address, "sums", command, states, stack, replication_factor=replicas)
        instances = [sums.instance("streams") for _ in range(2)]
        wait_until_running(*instances)
        for number in range(1, kills + 1):
            joins_or_leaves = number % _EVERY_JOIN_OR_LEAVE == 0
            if joins_or_leaves:
                _join_or_leave(sums, instances)
            _kill_once(broker, rng, sums, number)
        wait_until_running(*instances)
        assert [instance.leave() for instance in instances] == [0] * len(instances)
    return sums


def _join_or_leave(sums: Application, instances: list[Instance]) -> None:
    """Have the third instance join; one of three leaves, and its state goes with it."""
    if len(instances) == 2:
        instances.append(sums.instance("streams"))
    else:
        assert instances.pop(0).leave() == 0


def _kill_once(broker: BrokerProcess | ThreeBrokers, rng: random.Random, sums: Application, number: int) -> None:
    sums.begin_to_order(_ORDERS)
    delay_s = rng.uniform(0, LONGEST_WAIT_FOR_KILL_S)
    # The moment of the kill is random: no condition is waited for.
    time.sleep(delay_s)
    broker.kill9()
    sums.begin_to_order(_ORDERS)
    killed_s = time.monotonic()
    broker.start()
    started_s = time.monotonic()
    sums.order(_ORDERS)
    # A producer gives up what it could not commit for a minute. On a busy machine several restarts take as long.
    sums.wait_for_sums()
    caught_up_s = time.monotonic() - started_s
    times = f"away for {started_s - killed_s:.1f} s, caught up after {caught_up_s:.1f} s"
    print(f"kill {number} after {delay_s:.3f} s, {times}: {sums.orders} orders", flush=True)


def main() -> None:
    """Run it and report."""

    def run(broker: BrokerProcess | ThreeBrokers, kills: int) -> str:
        sums = kill_under_streams(broker, seeded("streams"), kills)
        return f"{sums.orders} orders, and the sums {dict(sums.owed)}"

    run_with_kills(__doc__, SETTINGS, run, "no order lost or doubled, no group stuck, no instance failed", ThreeBrokers)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
