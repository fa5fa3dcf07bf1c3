"""Memory of joint learning on MNIST-full."""

from __future__ import annotations

import json
import sys

import torch

from benchmarks.common import Memory, in_fresh_process, write
from jule.backward import embed
from jule.images import load_dataset
from jule.joint import finish, first_network, joint_learning, preset


def measure() -> dict[str, float]:
    """Peak memory of the whole process over a round and RC, trained on a tenth of an epoch.

    How long a period trains makes no difference to the memory of a batch.
    """
    memory = Memory()
    data = load_dataset("mnist")
    config = preset("default", n_clusters=10, rounds=1, epochs=0.1, least_images=0)
    embedder = first_network(data.images, config)
    *_, state = joint_learning(data.images, embedder, config)
    finish(embed(embedder, data.images), state, config)
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
