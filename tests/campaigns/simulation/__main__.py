"""All simulations, so many seeds of each: ``python -m tests.campaigns.simulation --seeds 20000 --jobs 2``."""

import sys

from tests.campaigns.simulation import runner
from tests.campaigns.simulation.groups.histories import CLASSIC
from tests.campaigns.simulation.streams.histories import SIMULATION as STREAMS
from tests.campaigns.simulation.transactions.histories import SIMULATION as TRANSACTIONS


def main(arguments: list[str] | None = None) -> int:
    """1 if a history fails."""
    options = runner.parser_of(__doc__ or "").parse_args(arguments)
    failed = 0
    for name, simulation in (("classic groups", CLASSIC), ("streams groups", STREAMS), ("transactions", TRANSACTIONS)):
        print(f"{name}:", flush=True)
        outcome = runner.run_all(simulation, options.first, options.seeds, options.jobs)
        if options.counts:
            print("\n".join(f"{count:>9} {what}" for what, count in sorted(outcome.counts.items())))
        runner.tell(simulation, outcome)
        failed += outcome.failed
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
