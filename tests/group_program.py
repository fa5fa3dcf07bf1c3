"""A program that makes a process group of its own and fits in it, for test_ranks.py."""

import json
import sys

import numpy as np
import torch
import torch.distributed as dist

from jule import JULE
from jule.images import load_dataset
from jule.ranks import DisagreementError, existing_ranks


def exchanged():
    """What every exchange of arrays gives this process, as plain values."""
    with existing_ranks() as ranks:
        rank = ranks.rank
        counts = [1, 2]
        own = np.arange(counts[rank] * 2, dtype=np.float64).reshape(-1, 2) + 10 * rank
        gathered = ranks.gather_rows(own, counts)
        none = ranks.gather_rows(own[: 1 - rank], [1, 0])
        rows = np.arange(3, dtype=np.int32)[:, None] + 10 * rank
        owned = ranks.exchange_rows(rows, counts)
        total = ranks.sum_(torch.tensor([1.0, rank]))
        texts = ranks.gather_texts("é" * rank)
        told = np.array(3.5), np.arange(6, dtype=np.int16).reshape(3, 2)[::2], np.empty((0, 4))
        if ranks.is_first:
            ranks.tell({"do": "x"}, told)
            about, arrays = {"do": "x"}, told
        else:
            about, arrays = ranks.hear()
    return {
        "gathered": None if gathered is None else gathered.tolist(),
        "none": None if none is None else none.tolist(),
        "owned": owned.squeeze(2).tolist(),
        "total": total.tolist(),
        "texts": texts,
        "told": [about, [[str(x.dtype), list(x.shape), x.tolist()] for x in arrays]],
    }


def fitted():
    """What every process gets when all of them fit the same images, or different ones."""
    images = load_dataset("digits").images[:1200]
    settings = {"min_images": 600, "max_epochs": 0.5, "n_periods": 2}
    model = JULE(n_clusters=10, rounds=1, settings=settings).fit(images)
    flipped = images[:, :, :: 1 - 2 * (dist.get_rank() == 1)]
    try:
        JULE(n_clusters=10).fit(flipped)
        message = ""
    except DisagreementError as error:
        message = str(error)
    return {
        "labels": model.labels_.tolist(),
        "steps": [period.steps for period in model.history_],
        "predicted": model.predict(images[:20]).tolist(),
        "message": message,
    }


if __name__ == "__main__":
    dist.init_process_group("gloo")
    with open(f"{sys.argv[1]}-{dist.get_rank()}.json", "w") as file:
        json.dump(exchanged() | fitted(), file)
    dist.destroy_process_group()
