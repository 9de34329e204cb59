"""The process of a teller: ``python -m tests.campaigns.soak.worker TOLD``, with its arguments as JSON."""

from __future__ import annotations

import json
import logging
import sys
import traceback

from tests.campaigns.soak.teller import Teller, Told, described, say


def _teller(told: Told) -> Teller:
    # Each process imports one library.
    if told.make == "librdkafka":
        from tests.campaigns.soak.confluent_teller import ConfluentTeller as Make
    elif told.make == "kafka-python":
        from tests.campaigns.soak.kafka_python_teller import KafkaPythonTeller as Make
    else:
        from tests.campaigns.soak.aiokafka_teller import AiokafkaTeller as Make
    return Make(told)


def main() -> None:
    """Work; report the error if that cannot continue."""
    logging.disable()
    try:
        _teller(Told(**json.loads(sys.argv[1]))).work()
    except Exception as error:  # noqa: BLE001  whatever it is, it is counted
        traceback.print_exc()
        say("gave up", described(error))
        sys.exit(2)


if __name__ == "__main__":
    main()
