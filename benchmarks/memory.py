"""Memory: the peak of joint learning on MNIST-full."""

from __future__ import annotations

import json
import sys

import torch

from benchmarks.common import Memory, in_fresh_process, write
from jule.images import load_dataset
from jule.joint import finish, init_network, joint_learning, preset


def measure() -> dict[str, float]:
    """Return the peak memory of this process over one round and RC.

    It trains for a tenth of an epoch, because longer training needs no more memory.
    """
    memory = Memory()
    data = load_dataset("mnist")
    config = preset("default", n_clusters=10, rounds=1, epochs=0.1, min_images=0)
    embedder = init_network(data.images, config)
    *_, state = joint_learning(data.images, embedder, config)
    finish(state, config)
    return {"MiB in all": memory.before + memory.peak()}


def main() -> None:
    found = in_fresh_process("benchmarks.memory", "measure")
    settings = {"rounds": 1, "epochs": 0.1, "threads": torch.get_num_threads()}
    write("memory", "python -m benchmarks.memory", settings, found)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        print(json.dumps(measure()))
