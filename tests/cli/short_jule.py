"""The `jule` command with little training, for tests that start processes.

With the first argument ``--fail=killed``, rank 1 is killed in its second training.
"""

import os
import signal
import sys

if __name__ == "__main__":
    # As the command does it before it loads numba, which does not change its threads later.
    os.environ.setdefault("NUMBA_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))

import jule.forward.exact
import jule.joint.team
from jule.cli import main
from jule.joint import Config

STEPS = 6
BLOCK = 128  # so that a few hundred samples are searched together
FAIL = "--fail=killed"

train = jule.joint.team.train
trained = []


def train_and_die(*arguments, **options):
    trained.append(1)
    if len(trained) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return train(*arguments, **options)


if __name__ == "__main__":
    Config.steps_per_period = lambda *_: STEPS
    jule.forward.exact.BLOCK, jule.forward.exact.WIDTH = BLOCK, 4 * BLOCK
    sys.modules["umap"] = None  # compiles for a minute, where it is installed
    if sys.argv[1] == FAIL and os.environ["RANK"] == "1":
        jule.joint.team.train = train_and_die
    sys.argv[1:] = [one for one in sys.argv[1:] if one != FAIL]
    main()
