"""Run all benchmarks in turn, except `benchmarks.once`, which needs a second source tree."""

from benchmarks import (
    approximate,
    deep,
    encoder,
    ensemble,
    few,
    folder,
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
    rounder,
    small,
    spectral,
    training,
    trust,
    vectors,
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
    folder,
    peers,
    spectral,
    photos,
    vectors,
    encoder,
    many_photos,
    trust,
    ensemble,
    deep,
    kernel,
    rounder,
)
for benchmark in ALL:
    print(f"--- {benchmark.__name__}: {benchmark.__doc__}")
    benchmark.main()
