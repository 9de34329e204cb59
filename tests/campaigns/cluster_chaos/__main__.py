"""Runs the campaign: ``python -m tests.campaigns.cluster_chaos --minutes 5``, so long on each kind of controller."""

import argparse
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.campaigns.cluster_chaos.chaos import Chaos
from tests.campaigns.cluster_chaos.clients import Violation
from tests.campaigns.cluster_chaos.faults import FAULTS
from tests.campaigns.cluster_chaos.harms import HARMS
from tests.campaigns.cluster_chaos.nodes import CONTROLLERS


def main() -> int:
    """0 where nothing was violated; with a fault, where something was."""
    parser = argparse.ArgumentParser(prog="cluster-chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--controller", choices=[*CONTROLLERS, "both"], default="both")
    parser.add_argument("--fault", choices=sorted(FAULTS), help="put into every broker: the run must find it")
    parser.add_argument("--harms", nargs="*", choices=sorted(HARMS), default=list(HARMS), metavar="HARM", help=", ".join(HARMS))
    parser.add_argument("--keep", type=Path, help="where the nodes' directories and logs stay")
    chosen = parser.parse_args()
    kinds = list(CONTROLLERS) if chosen.controller == "both" else [chosen.controller]
    violated = sum([_is_violated(kind, chosen) for kind in kinds])
    print(f"cluster-chaos: seed {chosen.seed}: violations: {violated}", flush=True)
    return int(violated < len(kinds) if chosen.fault else violated > 0)


def _is_violated(kind: str, chosen: argparse.Namespace) -> bool:
    scratch = Path(tempfile.mkdtemp(prefix="odradek-chaos-"))
    chaos = Chaos(scratch, kind, chosen.seed, fault=chosen.fault)
    try:
        print(chaos.run(chosen.minutes * 60, tuple(chosen.harms)), flush=True)
    except Violation as violation:
        print(f"cluster-chaos: VIOLATION: {violation}\n{chaos.report()}", flush=True)
        return True
    finally:
        chaos.nodes.brokers.close()
        if chosen.keep is not None:
            # The controller runs on, since its end takes its directory along: a file of its may come and go.
            with suppress(shutil.Error):
                shutil.copytree(scratch, chosen.keep / kind, dirs_exist_ok=True)
        chaos.close()
        shutil.rmtree(scratch, ignore_errors=True)
    return False


if __name__ == "__main__":
    sys.exit(main())
