"""Run all benchmarks in turn, except `benchmarks.once`, which needs a second source tree, and
`benchmarks.rules`, which needs finished runs.

Of `benchmarks.corrections`, only edits are measured: the rest needs finished runs or that tree.
"""

from benchmarks import (
    approximate,
    corrections,
    deep,
    encoder,
    ensemble,
    faces,
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
    ranks,
    report,
    rival_memory,
    rounder,
    rounds,
    serve,
    small,
    spectral,
    suggested,
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
    rival_memory,
    pictures,
    report,
    serve,
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
    suggested,
    faces,
    ensemble,
    deep,
    kernel,
    rounder,
    rounds,
    ranks,
    corrections,
)
for benchmark in ALL:
    print(f"--- {benchmark.__name__}: {benchmark.__doc__}")
    benchmark.main()
