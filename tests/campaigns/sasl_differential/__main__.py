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
from tests.campaigns.sasl_differential.takeover import taken_over
from tests.campaigns.sasl_differential.token_dialogues import add_acls, disabled_dialogues, observe_tokens
from tests.campaigns.sasl_differential.token_dialogues import dialogues as token_dialogues

RECORDED = Path(__file__).with_name("recorded.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.sasl_differential", description=__doc__.partition("\n")[0])
    parser.add_argument("--record", action="store_true", help="keep what Apache Kafka said")
    parser.add_argument("--show", action="store_true", help="print what became of each client")
    parser.add_argument("--no-clients", action="store_true", help="dialogues alone, without client libraries")
    parser.add_argument("--only-tokens", action="store_true", help="dialogues about delegation tokens alone")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with kafka(directory / "scratch") as theirs:
            dialogues = {} if chosen.only_tokens else observe(theirs)
            clients = {} if chosen.no_clients or chosen.only_tokens else matrix(theirs)
            if chosen.show:
                _show("Kafka", clients)
            add_acls(theirs)
            dialogues |= observe_tokens(theirs, token_dialogues())
        with kafka(directory / "scratch2", has_tokens=False) as theirs:
            dialogues |= observe_tokens(theirs, disabled_dialogues())
        if chosen.record:
            known = json.loads(RECORDED.read_text()) if chosen.only_tokens else {}
            RECORDED.write_text(json.dumps(known | dialogues, indent=0, ensure_ascii=True) + "\n")
        # As it is read again, without tuples.
        dialogues = json.loads(json.dumps(dialogues))
        with odradek(directory) as ours:
            said = {} if chosen.only_tokens else observe(ours)
            found = matrix(ours) if clients else {}
            differing = compare("client", clients, found)
            if chosen.show:
                _show("odradek", found)
            add_acls(ours)
            said |= observe_tokens(ours, token_dialogues())
        with odradek(directory / "disabled", has_tokens=False) as ours:
            said |= observe_tokens(ours, disabled_dialogues())
        (directory / "taken-over").mkdir()
        others = taken_over(directory / "taken-over")
        differing += len(others)
        for each in others:
            print(each)
        differing += compare("dialogue", dialogues, json.loads(json.dumps(said)))
    print(f"{len(dialogues)} dialogues, {len(clients)} clients, {differing} differences")
    return int(differing > 0)


def _show(broker: str, clients: Mapping[str, str]) -> None:
    for client, told in clients.items():
        print(f"{broker}: {client}: {told}", flush=True)


def compare(kind: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> int:
    """Tell what differs and has no name, and how many."""
    differing = [name for name in theirs if theirs[name] != ours[name] and name not in KNOWN]
    for name in differing:
        print(f"{kind} {name}\n  Kafka   {json.dumps(theirs[name])}\n  odradek {json.dumps(ours[name])}")
    return len(differing)


if __name__ == "__main__":
    sys.exit(main())
