"""Run a bank under fire, with real clients that move money in transactions. The module ``soak`` says what it checks."""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.broker_process import BrokerProcess
from tests.campaigns.crash.support import seeded
from tests.campaigns.planted import FaultyBroker
from tests.campaigns.soak.books import Violation, require
from tests.campaigns.soak.faults import FAULTS, OFTEN
from tests.campaigns.soak.kafka_broker import KafkaBroker
from tests.campaigns.soak.settings import KAFKA_PACE, SETTINGS, Pace
from tests.campaigns.soak.soak import Soak

if TYPE_CHECKING:
    import random

# Of a further bank on Kafka.
SHORTEST_S = 20.0


def main() -> None:
    """Run and report; status 1 after a violation, or where a seeded fault was not found."""
    options = _options()
    logging.disable()
    rng = seeded("bank")
    directory = Path(tempfile.mkdtemp(prefix="odradek-soak-"))
    print(f"what the broker and the tellers leave, until all is well: {directory}", flush=True)
    end = time.monotonic() + options.minutes * 60
    found = _run(options, directory / "1", rng, options.minutes * 60)
    banks = 1
    while options.broker == "kafka" and (left_s := end - time.monotonic()) > SHORTEST_S:
        banks += 1
        found = _run(options, directory / str(banks), rng, left_s) or found
    if (found is None) == (options.fault is None):
        shutil.rmtree(directory)
    else:
        print("the seeded fault was not found" if found is None else f"what is left: {directory}")
        sys.exit(1)


def _run(options: argparse.Namespace, directory: Path, rng: random.Random, duration_s: float) -> Violation | None:
    """Open a bank, print its table, and return the violation, if there is one."""
    directory.mkdir()
    pace = KAFKA_PACE if options.broker == "kafka" else Pace()
    pace = replace(pace, orders_a_second=options.orders_per_second, orders_a_transaction=options.orders_per_transaction)
    found = None
    with _broker(options, directory / "broker") as broker:
        soak = Soak(broker, directory / "tellers", rng, pace)
        try:
            unmoved = soak.run(duration_s).unmoved()
            require(not unmoved, f"logs that did not roll or were not compacted, so that the run says little: {unmoved}")
        except Violation as error:
            found = error
        print(soak.report())
    print("violations                      " + ("0" if found is None else f"1: {found}"), flush=True)
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--orders-per-second", type=float, default=Pace().orders_a_second)
    parser.add_argument("--orders-per-transaction", type=int, default=Pace().orders_a_transaction)
    parser.add_argument("--broker", choices=("odradek", "kafka"), default="odradek")
    parser.add_argument("--fault", choices=sorted(FAULTS), help="seed this fault into odradek, which the run must find")
    return parser.parse_args()


def _broker(options: argparse.Namespace, directory: Path) -> BrokerProcess | KafkaBroker:
    if options.broker == "kafka":
        return KafkaBroker(directory, settings=SETTINGS)
    if options.fault is not None:
        return FaultyBroker(directory, settings=SETTINGS).use("tests.campaigns.soak.faults", options.fault, OFTEN[options.fault])
    return BrokerProcess(directory, settings=SETTINGS)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
