"""Both fuzzers, one after the other: ``python -m tests.campaigns.fuzz --frames 1000000 --socket-frames 20000``.

Each is a program of its own, too, with the seed and the first frame as arguments; a failure prints the command that repeats it.
"""

import argparse
import subprocess
import sys

_PACKAGE = "tests.campaigns.fuzz"


def main() -> int:
    """1 if one of them fails."""
    parser = argparse.ArgumentParser(prog=f"python -m {_PACKAGE}", description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=1_000_000, help="through protocol/")
    parser.add_argument("--socket-frames", type=int, default=20_000, help="through a live socket")
    chosen = parser.parse_args()
    failed = 0
    for program, frames in (("protocol_fuzz", chosen.frames), ("socket_fuzz", chosen.socket_frames)):
        command = [sys.executable, "-m", f"{_PACKAGE}.{program}", "--frames", str(frames)]
        failed += subprocess.run(command, check=False).returncode != 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
