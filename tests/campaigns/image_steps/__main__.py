"""The image as it is shipped, and Spark's, from clean roots: ``python -m tests.campaigns.image_steps``.

Runs each step of the Dockerfile, all of the compilation included, then the containers of the compose file. Prints how long each
step took, and how large each root has become.
"""

import argparse
import sys

from tests.campaigns.image_steps.containers import built_and_run
from tests.campaigns.image_steps.root import missing


def main() -> int:
    """1 where something is not as it should be, 2 where this cannot be tried."""
    argparse.ArgumentParser(prog="python -m tests.campaigns.image_steps", description=__doc__.partition("\n")[0]).parse_args()
    if (reason := missing()) is not None:
        print(reason, file=sys.stderr)
        return 2
    with built_and_run(whole=True) as ran:
        print(f"{ran.base_took_s:7.1f} s  debootstrap")
        for name, image in ran.images.items():
            for step, took_s in image.steps:
                print(f"{took_s:7.1f} s  {name}: {step}")
            print(f"{image.root.size_mb():7,} MB {name}", flush=True)
        violations = ran.violations()
        print("\n".join([f"{len(ran.extensions())} modules compiled; violations {len(violations)}", *violations]))
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main())
