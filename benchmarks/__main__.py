"""Run all benchmarks in turn, except `benchmarks.once`, which needs a second source tree."""

from benchmarks import (
    approximate,
    deep,
    few,
    growth,
    kernel,
    linkage,
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
    deep,
    kernel,
)
for benchmark in ALL:
    print(f"--- {benchmark.__name__}: {benchmark.__doc__}")
    benchmark.main()
