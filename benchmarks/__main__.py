"""Run all benchmarks in turn, except `benchmarks.once`, which needs a second source tree."""

from benchmarks import (
    approximate,
    deep,
    encoder,
    few,
    growth,
    kernel,
    linkage,
    many_photos,
    memory,
    neighbors,
    peers,
    photos,
    pictures,
    report,
    small,
    training,
)

ALL = (
    neighbors,
    approximate,
    linkage,
    growth,
    training,
    memory,
    pictures,
    report,
    small,
    few,
    peers,
    photos,
    encoder,
    many_photos,
    deep,
    kernel,
)
for benchmark in ALL:
    print(f"--- {benchmark.__name__}: {benchmark.__doc__}")
    benchmark.main()
