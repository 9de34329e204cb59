"""Runs the campaign: ``python -m tests.campaigns.sasl_clusters``, each mechanism and protocol under each of ``--controllers``."""

import argparse
import sys
import tempfile
import traceback
from pathlib import Path

from tests.campaigns.sasl_clusters.checks import CHECKS, OF_OUR_CONTROLLER, OF_PASSWORDS
from tests.campaigns.sasl_clusters.cluster import OAUTHBEARER, SaslCluster, Security

SECURITIES = tuple(
    Security(protocol, mechanism)
    for protocol in ("SASL_PLAINTEXT", "SASL_SSL")
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
)


def main() -> int:
    """0 where all holds."""
    parser = argparse.ArgumentParser(prog="sasl-clusters", description=__doc__)
    parser.add_argument("--controllers", default="kafka,odradek")
    parser.add_argument("--only", default="", help="part of the name of a check, a protocol or a mechanism")
    chosen = parser.parse_args()
    checked, failed = 0, 0
    for controller in chosen.controllers.split(","):
        for security in SECURITIES:
            outcomes = _run(controller, security, chosen.only)
            checked += len(outcomes)
            failed += outcomes.count(False)
    print(f"{checked} checks, {failed} failed", flush=True)
    return int(failed > 0)


def _run(controller: str, security: Security, only: str) -> list[bool]:
    """Whether each check has held."""
    where = f"{security.mechanism} by {security.protocol} under {controller}'s controller"
    left_out = OF_OUR_CONTROLLER if controller == "kafka" else frozenset[str]()
    if security.mechanism == OAUTHBEARER:
        left_out |= OF_PASSWORDS
    checks = [name for name in CHECKS if only in f"{name} {where}" and name not in left_out]
    if not checks:
        return []
    with tempfile.TemporaryDirectory(prefix="odradek-sasl-") as scratch:
        cluster = SaslCluster(Path(scratch) / "cluster", security, is_kafkas_controller=controller == "kafka")
        try:
            cluster.begin()
            return [_holds(cluster, name, where) for name in checks]
        except Exception:  # noqa: BLE001  whatever it is, the others are run
            print(f"{where}: not begun\n{traceback.format_exc()[-4000:]}", flush=True)
            return [False] * len(checks)
        finally:
            cluster.close()


def _holds(cluster: SaslCluster, name: str, where: str) -> bool:
    try:
        CHECKS[name](cluster)
    except Exception:  # noqa: BLE001  whatever it is, it is told
        print(f"FAILED {where}: {name}\n{traceback.format_exc()[-4000:]}", flush=True)
        return False
    print(f"{where}: {name}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
