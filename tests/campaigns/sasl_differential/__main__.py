"""The same dialogues and clients to odradek and to Apache Kafka: ``python -m tests.campaigns.sasl_differential``.

``--record`` writes what Apache Kafka said in the dialogues, which the short form compares odradek with.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.campaigns.sasl_differential.brokers import kafka, odradek
from tests.campaigns.sasl_differential.clients import matrix
from tests.campaigns.sasl_differential.dialogues import KNOWN, observe

RECORDED = Path(__file__).with_name("recorded.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.sasl_differential", description=__doc__.partition("\n")[0])
    parser.add_argument("--record", action="store_true", help="keep what Apache Kafka said")
    parser.add_argument("--no-clients", action="store_true", help="dialogues alone, without client libraries")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with kafka(directory / "scratch") as theirs:
            dialogues = observe(theirs)
            clients = {} if chosen.no_clients else matrix(theirs)
        if chosen.record:
            RECORDED.write_text(json.dumps(dialogues, indent=0, ensure_ascii=True) + "\n")
        with odradek(directory) as ours:
            differing = compare("dialogue", dialogues, observe(ours))
            if clients:
                differing += compare("client", clients, matrix(ours))
    print(f"{len(dialogues)} dialogues, {len(clients)} clients, {differing} differences")
    return int(differing > 0)


def compare(kind: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> int:
    """Tell what differs and has no name, and how many."""
    differing = [name for name in theirs if theirs[name] != ours[name] and name not in KNOWN]
    for name in differing:
        print(f"{kind} {name}\n  Kafka   {json.dumps(theirs[name])}\n  odradek {json.dumps(ours[name])}")
    return len(differing)


if __name__ == "__main__":
    sys.exit(main())
