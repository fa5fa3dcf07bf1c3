"""Run all benchmarks in turn, except `benchmarks.once`, which needs a second source tree."""

from benchmarks import (
    approximate,
    growth,
    linkage,
    memory,
    neighbors,
    pictures,
    report,
    small,
    training,
)

ALL = (neighbors, approximate, linkage, growth, training, memory, pictures, report, small)
for benchmark in ALL:
    print(f"--- {benchmark.__name__}: {benchmark.__doc__}")
    benchmark.main()
