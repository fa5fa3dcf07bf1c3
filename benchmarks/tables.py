"""Write the tables of results/benchmarks/ into the pages that show them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import mean_and_spread, read_measured
from benchmarks.tables_of_faces import FACES
from benchmarks.tables_of_rivals import RIVALS
from benchmarks.tables_of_scale import SCALE
from jule.paper.records import read_record
from jule.paper.tables import fill_pages, markdown

ROOT = Path(__file__).parent.parent
MARKER = "benchmark"
SHARE = "jule's share of that"


def _times(found: dict[str, Any]) -> list[list[str]]:
    times = found["seconds"].items()
    return [[what, f"{taken:.2f} s"] for what, taken in times if not isinstance(taken, list)]


def neighbors(results: Path) -> str:
    found = read_measured(results, "neighbors")
    names = ("faiss / jule", "jule / bare products all", "jule / bare products once")
    ratios = [[name, f"{found[name]:.2f}"] for name in names]
    return markdown(["", "measured"], _times(found) + ratios)


def linkage(results: Path) -> str:
    found = read_measured(results, "linkage")
    rows = [
        ["ward / jule", f"{found['ward / jule']:.1f}"],
        ["memory above the input", f"{found['MiB above input']:.0f} MiB"],
        ["compiling all kernels, once", f"{found['seconds to compile the kernels once']:.0f} s"],
        ["reading them from the cache", f"{found['seconds to read them from the cache']:.1f} s"],
    ]
    return markdown(["", "measured"], _times(found) + rows)


def corrections(results: Path) -> str:
    found = read_measured(results, "corrections")
    edits, merging, update = found["edits"], found["merging"], found["update"]
    apply = found["apply"]["fastest"]
    times = [max(values) for values in edits["ms of an edit"].values()]
    rows = [
        ["an edit saved, median", f"{edits['median ms of all']:.0f} ms"],
        ["an edit saved, longest", f"{max(times):.0f} ms"],
        ["pairs that are probably the same", f"{edits['seconds']['same pairs']:.1f} s"],
        ["clusters to split first", f"{edits['seconds']['strangers']:.1f} s"],
        ["near-duplicates", f"{edits['seconds']['near-duplicates']:.2f} s"],
        ["`jule apply --no-page`, processor time", f"{apply['apply --no-page']:.1f} s"],
        ["`jule apply`, which makes the page, too", f"{apply['apply']:.1f} s"],
        ["`import numpy` at the same time, for comparison", f"{apply['import numpy']:.2f} s"],
        [
            f"{update['images added']:,} images added to a run of {update['images before']:,}",
            f"{update['seconds']:.1f} s",
        ],
        ["merging without constraints, now / before", f"{merging['now / before']:.2f}"],
        [
            f"merging with {merging['cannot-links']:,} cannot-links / without",
            f"{merging['with constraints / now']:.2f}",
        ],
    ]
    return markdown(["", "measured"], rows)


def refining(results: Path) -> str:
    scores = read_measured(results, "corrections")["refining"]["scores"]
    rows = [
        [name, mean_and_spread(found, "nmi", 3), mean_and_spread(found, "ac", 3)]
        for name, found in scores.items()
    ]
    return markdown(["", "NMI", "AC"], rows)


def suggestions(results: Path) -> str:
    found = read_measured(results, "corrections")["suggestions"]
    pairs, branches = found["pairs at twice the classes"], found["branches at 0.7 of the classes"]
    precision, degree = "average precision", "average precision of Eq. 12"
    rows = [
        [
            name,
            mean_and_spread(pairs[name], precision, 2),
            mean_and_spread(pairs[name], degree, 2),
            mean_and_spread(pairs[name], "share of all pairs", 2),
            mean_and_spread(branches[name], "precision of as many", 2),
            mean_and_spread(branches[name], "precision of all", 2),
        ]
        for name in pairs
    ]
    header = ["", "pairs", "pairs by Eq. 12", "by chance", "branches", "branches, one per cluster"]
    return markdown(header, rows)


def training(results: Path) -> str:
    found = read_measured(results, "training")
    rows = [
        [
            name,
            f"{step['plain images/s']:,.0f}",
            f"{step['jule images/s']:,.0f}",
            f"{step['jule / plain']:.2f}",
            f"{step['GFLOP/s of matrix products']:.0f}",
            f"{step[SHARE]:.0%}",
        ]
        for name, step in found["steps"].items()
    ]
    header = ["network", "plain images/s", "jule images/s", "jule / plain"]
    return markdown([*header, "GFLOP/s of matrix products", SHARE], rows)


def training_profile(results: Path) -> str:
    """Render one table per network: the operations of a step, with one thread."""
    found = read_measured(results, "training")["profiles"]
    return "\n\n".join(_operations(name, profile) for name, profile in found.items())


def _operations(network: str, profile: dict[str, Any]) -> str:
    names = [operation["name"] for operation in profile["operations"]]
    plain = [
        _share(operation["plain_rate"], profile["GFLOP/s of matrix products"])
        for operation in profile["operations"]
    ]
    rows = [
        [name, *rates, as_product]
        for name, rates, as_product in zip(
            [*names, "a whole step"], _rates(profile), [*plain, ""], strict=True
        )
    ]
    header = [network, "share of the step", "GFLOP/s", "of matrix products"]
    return markdown([*header, "a plain product of that shape"], rows)


def _rates(profile: dict[str, Any]) -> list[list[str]]:
    """Return share, GFLOP/s and share of the rate of products, of all operations and of a step."""
    step, rate = profile["seconds of a step"], profile["GFLOP/s of matrix products"]
    operations = [(operation["seconds"], operation["gflop"]) for operation in profile["operations"]]
    all_of_them = (step, sum(gflop for _, gflop in operations))
    return [
        [
            f"{seconds / step:.1%}",
            f"{gflop / seconds:.0f}" if gflop else "",
            _share(gflop / seconds, rate),
        ]
        for seconds, gflop in [*operations, all_of_them]
    ]


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if part else ""


def memory(results: Path) -> str:
    found = read_measured(results, "memory")
    row = ["MNIST-full, one round and RC, the whole process", f"{found['MiB in all']:,.0f} MiB"]
    return markdown(["", "peak"], [row])


def pictures(results: Path) -> str:
    record = read_record(results / "benchmarks" / "pictures.json")
    settings, found = record["settings"], record["measured"]
    decoding, cache, small = found["decoding"], found["cache"], found["small"]
    many = f"{settings['small']:,} JPEGs of {settings['small pixels']} pixels"
    in_blocks = cache["MB/s of reading the file in blocks"]
    with_workers = small["MiB, workers included, at most"]
    rows = [
        [name, f"{decoding[name]:,.0f} pictures/s"]
        for name in (
            "plain Pillow loop, one core",
            "jule, one core",
            "plain Pillow loop on every core",
            "jule, all cores",
        )
    ]
    rows += [
        [f"jule, {ratio}", f"{decoding[ratio]:.2f} ± {decoding[f'{ratio}, spread']:.2f}"]
        for ratio in ("all cores / one core", "one core / plain loop", "all cores / plain loops")
    ]
    rows += [
        [
            f"first reading of {settings['JPEGs']:,} JPEGs of {settings['pixels']} pixels",
            f"{cache['seconds of the first reading']:.1f} s",
        ],
        ["second reading", f"{cache['seconds of the second']:.1f} s"],
        ["the cache, copied out of the map", f"{cache['MB/s from the cache']:,.0f} MB/s"],
        ["the same file, read in blocks", f"{in_blocks:,.0f} MB/s"],
        [f"memory at the peak, {many}", f"{small['MiB, own']:,.0f} MiB"],
        ["the same with all workers, at most", f"{with_workers:,.0f} MiB"],
    ]
    return markdown(["", ""], rows)


def report(results: Path) -> str:
    rows = [
        [
            count,
            f"{at['seconds']:.1f}",
            f"{at['seconds of the processor']:.1f}",
            f"{at['MiB of memory']:,.0f}",
            f"{at['MB of the page']:.1f}",
            f"{at['MB in all']:.1f}",
            f"{at['seconds until it answers']:.1f}",
            f"{at['ms of a move, median']:.0f}",
            f"{at['ms of a move, longest']:.0f}",
        ]
        for count, at in read_measured(results, "report").items()
    ]
    header = ["images", "seconds to make", "of the processor", "MiB of memory"]
    header += ["MB of the page", "MB with pictures"]
    header += ["seconds until it answers", "ms per move of the slider, median", "longest"]
    return markdown(header, rows)


def serve(results: Path) -> str:
    found = read_measured(results, "serve")
    columns = {count: _served(measured) for count, measured in found.items()}
    whats = next(iter(columns.values()))
    rows = [[what, *(column[what] for column in columns.values())] for what in whats]
    return markdown(["", *(f"{count} images" for count in columns)], rows)


def _served(measured: dict[str, Any]) -> dict[str, str]:
    edits = {
        kind: f"{np.median(taken):.0f} ms, longest {max(taken):.0f} ms"
        for kind, taken in measured["ms of an edit"].items()
    }
    looks = {what: f"{taken:.2f} s" for what, taken in measured["seconds"].items()}
    size, memory = measured["MB of the page"], measured["MiB of memory"]
    return {
        **edits,
        **looks,
        "the page": f"{size:.1f} MB",
        "memory of the server": f"{memory:,.0f} MiB",
    }


def approximate(results: Path) -> str:
    found = read_measured(results, "approximate")
    header, rows = [""], [[method] for method in next(iter(found.values()))]
    for where, methods in found.items():
        header += [f"{where}, seconds", "recall"]
        for row in rows:
            measured = methods[row[0]]
            row += [f"{measured['seconds']:.1f}", f"{measured['recall']:.3f}"]
    return markdown(header, rows)


def growth(results: Path) -> str:
    found = read_measured(results, "growth")
    rows = []
    for name, curve in found["curves"].items():
        for at in curve:
            rows.append(
                [
                    name,
                    f"{at['n']:,}",
                    f"{at['seconds']:.2f}",
                    f"{at['MiB above input']:,.0f}",
                    f"{at['largest in-degree']:,}",
                    f"{at['neighbours']}, recall {at['recall']:.3f}",
                ]
            )
        rows.append([name, "**exponent**", f"**{found['exponents'][name]:.2f}**", "", "", ""])
    header = ["data", "samples", "seconds", "MiB above input", "largest in-degree", "neighbours"]
    return markdown(header, rows)


def once(results: Path) -> str:
    record = read_record(results / "benchmarks" / "once.json")
    settings, found = record["settings"], record["measured"]
    sets = {
        "large": f"{settings['images']:,} images of MNIST-test",
        "small": f"{settings['pictures']} pictures",
    }
    rows = [
        [
            f"`{command}`, {where}",
            f"{taken['before']:.2f} s",
            f"{taken['after']:.2f} s",
            f"{taken['before / after']:.2f}",
        ]
        for size, where in sets.items()
        for command, taken in found[size].items()
    ]
    return markdown(["", "before", "after", "before / after"], rows)


def once_counts(results: Path) -> str:
    counts = read_measured(results, "once")["counts"]
    kinds = ("neighbour searches", "embeddings")
    rows = [
        [f"`{command}`", *(f"{of[tree][kind]}" for kind in kinds for tree in ("before", "after"))]
        for command, of in counts.items()
    ]
    header = [f"{kind}, {tree}" for kind in kinds for tree in ("before", "after")]
    return markdown(["", *header], rows)


def small(results: Path) -> str:
    """Render the mean and standard deviation over the seeds, per set and method."""
    methods = ("K-means", "linkage", "as they are", "enlarged to 16")

    def cell(runs: list[dict[str, float]]) -> str:
        parts = []
        for score in ("nmi", "ac"):
            values = np.array([run[score] for run in runs])
            spread = f" ± {values.std():.3f}" if len(runs) > 1 else ""
            parts.append(f"{values.mean():.3f}{spread}")
        return " / ".join(parts)

    rows = []
    for name, found in read_measured(results, "small").items():
        chosen = max(found["enlarged to 16"], key=lambda run: run["modularity"])
        cells = [cell(found[method]) for method in methods]
        rows.append([name, f"{found['images']:,}", *cells, cell([chosen])])
    header = ["NMI / AC", "images", "K-means on pixels", "linkage on pixels"]
    header += ["joint, as they are", "joint, enlarged to 16", "of these, largest modularity"]
    return markdown(header, rows)


def kernel(results: Path) -> str:
    rows = []
    for name, found in read_measured(results, "kernel").items():
        cells = [
            mean_and_spread(found[which], score)
            for which in ("global", "local")
            for score in ("nmi", "ac")
        ]
        rows.append([name, *cells])
    return markdown(["", "global, NMI", "AC", "local, NMI", "AC"], rows)


def few(results: Path) -> str:
    """Render one row per data set and number of images."""
    rows = []
    for name, found in read_measured(results, "few").items():
        means = [
            [np.mean([run[score] for run in runs]) for score in ("nmi", "ac")]
            for runs in found.values()
        ]
        cells = [f"{own_nmi:.3f} / {own_ac:.3f}" for own_nmi, own_ac in means]
        rows.append([*name.split(", "), *cells])
    return markdown(["data set", "images", "NMI / AC, 20 neighbours", "square root"], rows)


def photos(results: Path) -> str:
    """Render the methods on photographs."""
    return _methods(results, "photos", ["images", "K", "K-means", "linkage", "joint learning"])


def vectors(results: Path) -> str:
    """Render the methods on plain vectors."""
    return _methods(results, "vectors", ["samples", "K", "K-means", "linkage", "joint learning"])


def _methods(results: Path, benchmark: str, header: list[str]) -> str:
    """Render one row per data set, with the mean and spread of every method."""
    rows = []
    for name, found in read_measured(results, benchmark).items():
        cells = []
        for runs in found["runs"].values():
            scores = [mean_and_spread(runs, score) for score in ("nmi", "ac")]
            if len(runs) == 1:
                scores = [score.partition(" ±")[0] for score in scores]
            cells.append(" / ".join(scores))
        taken = np.mean([run["seconds"] for run in found["runs"]["joint learning"]])
        rows.append([name, f"{found['images']:,}", f"{found['clusters']}", *cells, f"{taken:.0f}"])
    return markdown(["NMI / AC", *header, "seconds, joint learning"], rows)


def encoder(results: Path) -> str:
    """Render the rate of the encoder for photographs and of two loops over onnxruntime."""
    found = read_measured(results, "encoder")
    rates, ratios = found["pictures per second"], found["ratios"]
    row = [f"{rate:.1f}" for rate in rates.values()]
    return markdown([*rates, *ratios], [row + [f"{ratio:.2f}" for ratio in ratios.values()]])


def many_photos(results: Path) -> str:
    """Render the peak memory of each stage."""
    found = read_measured(results, "many_photos")
    rows = [
        [stage, *(f"{found[stage][kind]:,.0f}" for kind in ("own", "with files"))]
        for stage in ("encoding", "learning")
    ]
    return markdown(["MiB at most", "own", "with pages of files"], rows)


def folder(results: Path) -> str:
    """Render one row per data set: scores and seconds for both lengths of training."""
    rows = []
    for name, runs in read_measured(results, "folder").items():
        cells = []
        for found in runs.values():
            taken = np.mean([run["seconds"] for run in found])
            scores = [mean_and_spread(found, score) for score in ("nmi", "ac")]
            cells += [" / ".join(scores), f"{taken:.0f}"]
        rows.append([name, *cells])
    header = ["NMI / AC", "default", "seconds", "24,000 images per period", "seconds"]
    return markdown(header, rows)


def _seeds(results: Path, benchmark: str) -> dict[str, tuple[int, list[dict[str, Any]]]]:
    """Return the number of classes and the seeds of every set that a benchmark measured."""
    return {
        name: (each["clusters"], list(each["seeds"].values()))
        for name, each in read_measured(results, benchmark).items()
    }


def confidence(results: Path) -> str:
    """Render how well confidences are calibrated, before and after, and what the doubts find."""

    def of(seeds: list[dict[str, Any]], which: str, what: str) -> str:
        values = [seed[which][what] for seed in seeds if what in seed[which]]
        return f"{np.mean(values):.3f}" if values else "–"

    rows = []
    for name, (_, seeds) in _seeds(results, "trust").items():
        listed, hits, wrong = (
            sum(seed["doubts"][what] for seed in seeds)
            for what in ("listed", "listed and wrong", "wrong")
        )
        errors = [of(seeds, w, "calibration error") for w in ("learned graph alone", "confidence")]
        areas = [
            of(seeds, which, "AUC")
            for which in ("learned graph alone", "confidence", "purity of the cluster")
        ]
        right = np.mean([seed["with their class"] for seed in seeds])
        found = [f"{hits / n:.2f}" if n else "–" for n in (listed, wrong)]
        row = [name, f"{right:.3f}", of(seeds, "confidence", "mean"), *errors, *areas, *found]
        rows.append(row)
    header = ["", "with their class", "mean confidence", "error, learned graph alone"]
    header += ["error, confidence", "AUC, learned graph alone", "AUC, confidence"]
    header += ["AUC, purity of the cluster"]
    return markdown([*header, "precision of doubts", "recall of doubts"], rows)


def suggested(results: Path) -> str:
    """Render the suggested numbers of clusters, and the scores of the clusters they lead to."""
    rows, given = [], _seeds(results, "trust")
    for name, (k, seeds) in _seeds(results, "suggested").items():
        best = ", ".join(f"{seed['suggested'][0]}" for seed in seeds)
        others = "; ".join(", ".join(map(str, seed["suggested"][1:])) or "–" for seed in seeds)
        both = [given[name][1] if name in given else [], seeds]
        cells = [
            " / ".join(mean_and_spread(runs, score) for score in ("nmi", "ac")) if runs else "–"
            for runs in both
        ]
        rows.append([name, f"{k}", best, others, *cells])
    header = ["", "classes", "suggested, per seed", "next best, per seed"]
    return markdown([*header, "NMI / AC with the true number", "with the suggested one"], rows)


def ensemble(results: Path) -> str:
    """Render single networks and ensembles of three: scores, and how good their confidence is."""
    rows = []
    for name, found in read_measured(results, "ensemble").items():
        kinds = [list(found[kind].values()) for kind in ("single", "ensembles")]
        small = found.get("two small networks")
        if small:
            kinds.append(list(small["seeds"].values()))
        cells = []
        for runs in kinds:
            scores = [mean_and_spread(runs, score) for score in ("nmi", "ac")]
            if len(runs) == 1:
                scores = [score.partition(" ±")[0] for score in scores]
            cells.append(" / ".join(scores))
        of_confidence = [
            " → ".join(_mean_of([run["confidence"] for run in runs], what) for runs in kinds[:2])
            for what in ("calibration error", "AUC")
        ]
        count = f"{len(kinds[0])}, {len(kinds[1])}"
        small_cells = [cells[2], f"{small['seconds / usual']:.2f}"] if small else ["–", "–"]
        rows.append([name, count, *cells[:2], *of_confidence, *small_cells])
    header = ["NMI / AC", "runs, ensembles", "one network", "three networks"]
    header += ["calibration error, one → three", "AUC, one → three"]
    return markdown([*header, "two small networks", "their time per step"], rows)


def ensemble_rules(results: Path) -> str:
    """Render the calibration error and the AUC of the confidence of ensembles, by several rules."""
    rows, rules = [], ["in use"]
    for name, found in read_measured(results, "ensemble").items():
        runs = list(found["ensembles"].values())
        judged = {"in use": [run["confidence"] for run in runs]}
        judged |= {
            rule: [run["other rules"][rule] for run in runs] for rule in runs[0]["other rules"]
        }
        rules = list(judged)
        cells = [
            " / ".join(_mean_of(each, what) for what in ("calibration error", "AUC"))
            for each in judged.values()
        ]
        rows.append([name, *cells])
    return markdown(["calibration error / AUC", *rules], rows)


def confidence_rules(results: Path) -> str:
    """Render the calibration error and the AUC of the confidence by several rules."""
    rows, names = [], []
    for name, seeds in read_measured(results, "rules").items():
        runs = [seed["rules"] for seed in seeds.values()]
        names += [rule for rule in runs[0] if rule not in names]
        rows.append((name, runs))
    cells = [
        [
            f"{name} ({len(runs)})",
            *(
                " / ".join(
                    _mean_of([run[rule] for run in runs if rule in run], what)
                    for what in ("calibration error", "AUC")
                )
                for rule in names
            ),
        ]
        for name, runs in rows
    ]
    return markdown(["calibration error / AUC (runs)", *names], cells)


def _mean_of(records: list[dict[str, float]], what: str) -> str:
    values = [record[what] for record in records if what in record]
    return f"{np.mean(values):.3f}" if values else "–"


def ranks(results: Path) -> str:
    """Render the quality of runs on one process and on several."""
    rows = []
    for name, sizes in read_measured(results, "ranks").items():
        for size, seeds in sizes.items():
            scores = [one["scores"]["labels"] for one in seeds.values()]
            shown = [mean_and_spread(scores, score) for score in ("nmi", "ac")]
            seconds = sum(one["processor seconds"] for one in seeds.values()) / len(seeds)
            rows.append([name, size, *shown, f"{seconds:.0f}", str(len(seeds))])
    return markdown(["", "processes", "NMI", "AC", "processor seconds", "seeds"], rows)


TABLES: dict[str, Callable[[Path], str]] = {
    "training": training,
    "training profile": training_profile,
    "memory": memory,
    "pictures": pictures,
    "neighbors": neighbors,
    "linkage": linkage,
    "report": report,
    "serve": serve,
    "approximate": approximate,
    "growth": growth,
    "small": small,
    "once": once,
    "once counts": once_counts,
    **RIVALS,
    **FACES,
    "folder": folder,
    "ensemble": ensemble,
    "ensemble rules": ensemble_rules,
    "confidence": confidence,
    "confidence rules": confidence_rules,
    "suggested": suggested,
    "photos": photos,
    "vectors": vectors,
    "encoder": encoder,
    "many_photos": many_photos,
    "few": few,
    "kernel": kernel,
    "corrections": corrections,
    "refining": refining,
    "suggestions": suggestions,
    "ranks": ranks,
    **SCALE,
}


def main() -> None:
    for page in fill_pages(ROOT, MARKER, TABLES, ROOT / "results"):
        print(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
