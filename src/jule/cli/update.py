"""`jule update`: add pictures to a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.cluster import LOADING, DeviceOption, check_device
from jule.cli.output import counted, say, status
from jule.cli.reading import (
    CacheOption,
    MovedEncoder,
    Strict,
    absolute,
    agreed_source,
    open_not_empty,
    print_skipped,
)
from jule.progress import progress_bars, reading_bar


def update(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    more: Annotated[
        str,
        typer.Argument(
            metavar="MORE",
            help="New pictures: anything that jule cluster takes, also the folder of the run with "
            "pictures added to it.",
            show_default=False,
        ),
    ],
    retrain: Annotated[
        bool,
        typer.Option(
            "--retrain", help="Then train on all pictures for two more periods, like jule refine."
        ),
    ] = False,
    strict: Strict = False,
    features: MovedEncoder = None,
    cache: CacheOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Add pictures to a run: each is placed in a cluster, without training.

    Pictures that the run has already, by their content, are left out. Clusters keep their numbers
    and names, and corrections stay as they are. With --retrain, clusters may change; their names
    go to the clusters with most of their pictures.

    Examples:

      jule update photos-run new-photos

      jule update photos-run photos
    """
    from functools import partial

    from jule.locks import hold
    from jule.runs.folder import RunFolder
    from jule.runs.results import check_finished

    folder = RunFolder(run)
    check_finished(folder)
    opened = open_not_empty(more)
    check_device(device)
    with status(LOADING):
        from jule.cli.pages import write_report
        from jule.report import Report
        from jule.runs.adding import add_pictures, only_new
        from jule.runs.encoding import ENCODING, encode, encoder_of
        from jule.runs.predict import read_for_run
        from jule.runs.reading import read_again
        from jule.runs.refining import accept, refine
        from jule.runs.results import read_found

        encoder = encoder_of(folder, features)
    where = Path(cache) if cache else None
    with hold(run):
        with reading_bar(more) as show:
            data = read_for_run(folder, opened, strict=strict, cache=where, progress=show)
        print_skipped(data)
        new = only_new(read_found(folder).digests, data)
        with progress_bars(run.name) as bars:
            vectors = (
                data.samples[new]
                if encoder is None or len(new) == 0
                else encode(
                    encoder, data.samples[new], cache=where, progress=partial(bars, ENCODING)
                )
            )
            added = add_pictures(
                folder,
                data,
                new,
                vectors,
                source=absolute(more),
                device=device,
                progress=bars,
            )
        known = f", {added.n_known:,} were there already" if added.n_known else ""
        say(f"{counted(added.n_new, 'picture')} added to {run}{known}")
        if not added.n_new:
            return
        results = added.results
        for cluster, count in enumerate(added.counts):
            if count:
                name = results.cluster_names.get(cluster)
                title = f"cluster {results.numbers[cluster]}" + (f" ({name})" if name else "")
                say(f"  {count:,} in {title}")
        source = agreed_source(folder)
        if retrain:
            with progress_bars(run.name) as bars:
                every = read_again(folder, source, cache=where).samples
                samples = encode(encoder, every, cache=where, progress=partial(bars, ENCODING))
                refined = refine(folder, samples, device=device, progress=bars)
            accept(folder, refined)
            results = refined.after
            say(f"trained on {counted(len(every), 'picture')}")
        write_report(
            folder,
            lambda show: Report.of_run(folder, results=results, source=source, progress=show),
        )
