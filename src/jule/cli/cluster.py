"""`jule cluster` and `jule resume`: start a run, or resume it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jule.cli import ranks
from jule.cli.errors import is_plain_file
from jule.cli.numbers import whole
from jule.cli.output import counted, say, status
from jule.cli.reading import (
    AspectOption,
    CacheOption,
    ColourOption,
    EncoderMean,
    EncoderScaling,
    EncoderSize,
    EncoderStd,
    MovedEncoder,
    Size,
    Source,
    Strict,
    absolute,
    agreed_source,
    check_reading_options,
    choose_features,
    open_not_empty,
    print_skipped,
    requested_spec,
    warn_of_small_pictures,
)
from jule.features.registry import AUTO, PIXELS
from jule.memory import check_memory, format_bytes
from jule.progress import progress_bars, reading_bar
from jule.ranks import LostRankError
from jule.runs.names import EDITS

if TYPE_CHECKING:
    from jule.corrections.edits import EditLog
    from jule.features import Encoder
    from jule.images import Samples
    from jule.runs.edits import EditSession
    from jule.runs.folder import RunFolder

MENTIONED_MEMORY = 2**30  # bytes that a run needs; less is not mentioned
LOADING = "loading; the first start compiles kernels, for up to a minute"
DEVICES = ("auto", "cpu", "cuda", "mps")


def _known_device(name: str) -> str:
    if name.split(":")[0] not in DEVICES:  # such as cuda:1
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(DEVICES)}")
    return name


def check_device(name: str) -> None:
    """Raise if this machine does not have a device, before any picture is read.

    Examples
    --------
    >>> check_device("auto")
    """
    if name not in ("auto", "cpu"):
        with status(LOADING):
            from jule.backward.embedder import best_device
        best_device(name)


DeviceOption = Annotated[
    str, typer.Option(callback=_known_device, help="Device: auto, cpu, cuda or mps.")
]

EnsembleOption = Annotated[
    int,
    typer.Option(
        parser=whole(1),
        metavar="INTEGER",
        help="Networks to train, with different seeds, and to cluster side by side. "
        "Three are often better than one, and take three times as long.",
    ),
]


def cluster(
    source: Source,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder to create.")],
    n_clusters: Annotated[
        int | None,
        typer.Option(
            "-k",
            "--clusters",
            parser=whole(1),
            metavar="INTEGER",
            help="Number of clusters. Default: suggested.",
        ),
    ] = None,
    size: Size = None,
    aspect: AspectOption = "crop",
    colour: ColourOption = "auto",
    strict: Strict = False,
    folder_classes: Annotated[
        bool,
        typer.Option(
            "--folder-classes",
            help="Use the folder of each picture as its true class, to score the result.",
        ),
    ] = False,
    features: Annotated[
        str,
        typer.Option(
            help="What the clustering sees: pixels, or a pretrained encoder: photos, onnx:FILE, "
            "timm:MODEL or open_clip:MODEL/WEIGHTS. "
            "Default: photos for colour pictures of more than 64 pixels, if it is installed."
        ),
    ] = AUTO,
    encoder_size: EncoderSize = None,
    encoder_mean: EncoderMean = None,
    encoder_std: EncoderStd = None,
    cache: CacheOption = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    preset: Annotated[
        str, typer.Option(help="default, or paper: train as the authors did.")
    ] = "default",
    ensemble: EnsembleOption = 1,
    rounds: Annotated[int | None, typer.Option(help="Rounds of the recurrent process.")] = None,
    eta: Annotated[
        float | None, typer.Option(help="Unrolling rate, 0 to 1. Default: from the data.")
    ] = None,
    epochs: Annotated[float | None, typer.Option(help="Training epochs per period.")] = None,
    augment: Annotated[
        bool | None, typer.Option(help="Warp training images a little where it does no harm.")
    ] = None,
    neighbors: Annotated[
        str | None,
        typer.Option(
            help="How neighbours are searched: exact, approximate or auto, which is exact up to "
            "200,000 images."
        ),
    ] = None,
    n_components: Annotated[
        int | None,
        typer.Option(
            "--components",
            parser=whole(1),
            metavar="INTEGER",
            help="Also learn a map of so many dimensions, like jule map.",
        ),
    ] = None,
    edits: Annotated[
        Path | None,
        typer.Option(
            help="edits.json of another run: its names and corrections hold in this one, too. "
            "With --overwrite, those of the run that is replaced are kept by default."
        ),
    ] = None,
    device: DeviceOption = "auto",
    overwrite: Annotated[bool, typer.Option(help="Replace an existing run.")] = False,
) -> None:
    """Cluster pictures and train a network on them; write everything to one folder.

    Pictures that cannot be read are skipped and listed in skipped.csv.
    If the source has labels, they are only used to score the result.

    Examples:

      jule cluster photos -k 12 --out photos-run

      jule cluster photos -k 12 --features photos --out photos-run

      jule cluster "photos/2024-*/**/*.jpg" --size 96 --aspect fit --out run

      jule cluster digits.npz -k 10 --seed 0 --ensemble 3 --out digits-run

      jule cluster photos -k 20 --edits photos-run/edits.json --out photos-20
    """
    # Report bad input before loading torch, which takes seconds.
    check_reading_options(size, aspect, colour)
    scaling = EncoderScaling(encoder_size, encoder_mean, encoder_std)
    scaling.check(features)
    from jule.joint.config import kind_of
    from jule.joint.config import preset as make_config
    from jule.runs.encoding import check_preset, describe_encoder, encoder_spec, try_encoder
    from jule.runs.folder import check_new_folder, check_run_folder, create_run
    from jule.runs.update import is_empty

    given: dict[str, Any] = {
        "rounds": rounds,
        "eta": eta,
        "epochs": epochs,
        "augment": augment,
        "neighbors": neighbors,
    }
    if features not in (AUTO, PIXELS) and (size is not None or colour != "auto"):
        option = "--colour" if size is None else "--size"
        raise ValueError(
            f"{option} applies to pixels: the encoder {features!r} takes pictures of its own size, "
            "in colour"
        )
    settings = partial(
        make_config,
        preset,  # type: ignore[arg-type]
        n_clusters=n_clusters,
        seed=seed,
        ensemble=ensemble,
        n_components=n_components,
        **{name: value for name, value in given.items() if value is not None},
    )
    settings()  # raises for bad values, before reading
    check_preset(preset, features)
    if not ranks.current().is_first:
        ranks.follow(source, cache, device, settings)
        return
    if overwrite and edits is None and is_plain_file(os.path.join(out, EDITS)):
        edits = out / EDITS
        say(f"the corrections in {edits} are kept")
    log = None if edits is None else _log_for_new_run(edits)
    opened = open_not_empty(source, folder_classes=folder_classes)
    if n_clusters is not None and n_clusters > len(opened):
        raise ValueError(
            f"{source} has {counted(len(opened), 'image')}: {n_clusters:,} clusters cannot be made "
            "of them, so ask for fewer (-k)"
        )
    if overwrite and not is_empty(out) and out.is_dir():
        check_run_folder(out)
    else:
        check_new_folder(out)
    from jule.images import read_images

    check_device(device)
    surveyed = None
    if features == AUTO and preset == "default":
        features, surveyed = choose_features(opened, size, colour)
    encoder = _open_encoder(features, scaling)
    spec = (
        requested_spec(opened, size, aspect, colour, surveyed)
        if encoder is None
        else encoder_spec(encoder, opened, aspect)
    )
    if encoder is not None:
        warn_of_small_pictures(encoder, opened, surveyed)
    # An encoder needs the pictures on rank 0 only, which decodes them faster than it encodes them.
    shared_spec = spec if encoder is None else None
    with (
        reading_bar(source) as show,
        ranks.decoding(
            absolute(source), shared_spec, cache, folder_classes=folder_classes
        ) as shared,
    ):
        data = read_images(
            opened,
            spec,
            strict=strict,
            cache=Path(cache) if cache else None,
            progress=show,
            shared=shared,
        )
    from jule.files import write_atomic
    from jule.runs.corrected import log_bytes
    from jule.runs.reading import write_reading

    with status(LOADING):
        from jule.joint.loop import check_clusterable
        from jule.runs.cost import estimate_memory
    config = settings(of=kind_of(data.samples.shape[1:], encoded=encoder is not None))
    check_clusterable(data.samples, config)
    shape, is_encoded = data.samples.shape[1:], encoder is not None
    needed = estimate_memory(len(data), shape, config, encoded=is_encoded)
    check_memory(round(needed), f"clustering {counted(len(data), 'image')}")
    if needed > MENTIONED_MEMORY:
        say(f"clustering will take about {format_bytes(round(needed))} of memory")
    if encoder is not None:
        from jule.features.base import check_pictures

        check_pictures(data.samples)
        try_encoder(encoder, data.samples, Path(cache) if cache else None)
    ranks.lead(
        data,
        config,
        absolute(source),
        folder_classes=folder_classes,
        encoded=encoder is not None,
    )
    with _held(out):
        run = create_run(
            out,
            config,
            data.fingerprint,
            source=absolute(source),
            spec=data.spec,
            folder_classes=folder_classes,
            features=describe_encoder(encoder),
            overwrite=overwrite,
        )
        write_reading(run, data)
        if log is not None:
            write_atomic(run.path(EDITS), log_bytes(log))
        run_and_report(run, data, device, encoder, cache)


def _log_for_new_run(path: Path) -> EditLog:
    """Read edits that a new run takes over."""
    from jule.corrections.edits import EditLog
    from jule.runs.edits import read_edits

    found = read_edits(path)
    if not isinstance(found, EditLog):
        raise ValueError(
            f"{path} belongs to the page of one run: apply it there first (jule apply RUN {path}), "
            "and give RUN/edits.json here"
        )
    return found


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Make a folder if needed and hold its lock; after an error, remove a new folder if empty."""
    from jule.files import make_folder
    from jule.locks import hold

    is_new = not folder.exists()
    if is_new:
        make_folder(folder)
    try:
        with hold(folder):
            yield
    except BaseException:
        with suppress(OSError):  # it is not empty
            if is_new:
                folder.rmdir()
        raise


def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of an interrupted run.")],
    source: Annotated[
        str | None, typer.Option(help="Where the images are, if moved or if the run is not yours.")
    ] = None,
    features: MovedEncoder = None,
    cache: CacheOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Resume an interrupted run; it ends exactly as if it had not been interrupted.

    Example: jule resume photos-run
    """
    from jule.locks import hold
    from jule.runs.folder import RunFolder, unfinished_run

    if not ranks.current().is_first:
        ranks.follow(source, cache, device)
        return
    if unfinished_run(run) is None:
        RunFolder(run).about()  # raises unless there is a run
    check_device(device)
    with hold(run):
        unfinished = unfinished_run(run)
        if unfinished is None:
            _complete(RunFolder(run), source)
            return
        from jule.runs.encoding import encoder_of
        from jule.runs.reading import read_again, write_reading

        with status(LOADING):
            encoder = encoder_of(unfinished, features)
        where = agreed_source(unfinished, source)
        about = unfinished.about()
        place, by_folders = where or about["source"], about["folder_classes"]
        pixels = about["image_spec"] is not None and encoder is None
        spec = unfinished.image_spec() if pixels else None
        with (
            reading_bar(run.name) as show,
            ranks.decoding(place, spec, cache, folder_classes=by_folders) as shared,
        ):
            data = read_again(
                unfinished,
                where,
                cache=Path(cache) if cache else None,
                progress=show,
                shared=shared,
            )
        ranks.lead(
            data,
            unfinished.config(),
            place,
            folder_classes=by_folders,
            encoded=encoder is not None,
        )
        write_reading(unfinished, data)
        run_and_report(unfinished, data, device, encoder, cache)


def _complete(run: RunFolder, source: str | None) -> None:
    """Complete a finished run whose process was killed before the page was made."""
    from jule.runs.completion import complete

    if not complete(run):
        say(f"{run.folder} is finished: there is nothing to resume")
        return
    from jule.cli.pages import write_report
    from jule.report import Report

    say(f"{run.folder} is finished, except for its page, which is made now")
    where = agreed_source(run, source)
    write_report(run, lambda show: Report.of_run(run, source=where, progress=show))


def _open_encoder(features: str, scaling: EncoderScaling) -> Encoder | None:
    """Open the encoder that was asked for; None for pixels."""
    if features in (AUTO, PIXELS):
        return None
    from jule.runs.encoding import as_encoder

    with status(LOADING):
        return as_encoder(features, scaling.preprocessing())


def run_and_report(
    run: RunFolder,
    data: Samples,
    device: str,
    encoder: Encoder | None = None,
    cache: str | None = None,
) -> None:
    """Execute a run with progress bars, print its clusters, and make its page."""
    with status(LOADING):
        from jule.cli.pages import write_report
        from jule.cli.show import print_clusters
        from jule.joint.team import SINGLE
        from jule.report import Report
        from jule.runs.edits import run_constraints, write_edits
        from jule.runs.encoding import ENCODING, encode
        from jule.runs.execute import execute
        from jule.runs.folder import RunFolder

    home = run.home
    constraints = run_constraints(run, data)
    print_skipped(data, str(home / "skipped.csv"))
    if data.spec is not None:
        say(f"{len(data):,} pictures, resized to {data.spec}")
    if encoder is not None:
        say(f"they are described by {encoder.about}")
    try:
        with progress_bars(home.name) as show:
            samples = encode(
                encoder,
                data.samples,
                cache=Path(cache) if cache else None,
                progress=partial(show, ENCODING),
            )
            team = ranks.start(samples, encoded=encoder is not None)
            results = execute(
                run,
                samples,
                names=data.names,
                indices=data.indices,
                labels=data.labels,
                first_copies=data.first_copies,
                data=data.fingerprint,
                constraints=constraints,
                device=device,
                progress=show,
                team=team or SINGLE,
            )
    except LostRankError as error:
        how = f"then resume with any number of processes: jule resume {home}"
        raise LostRankError(f"{error}; {how}") from None
    except KeyboardInterrupt:
        say(f"jule: stopped; resume with: jule resume {home}", err=True)
        raise typer.Exit(130) from None
    if team is not None:
        team.end()
    finished = RunFolder(home)  # a run that replaces another one has moved there
    session = None
    if constraints is not None:
        session, _ = write_edits(finished, with_results=True)
        results = session.results()
    print_clusters(results, data.labels)
    say(f"{len(data):,} images in {results.seconds:.0f} s; results: {home}")
    if session is not None:
        _say_taken_over(session)
    say(f"To sort the pictures into folders: jule export {home} --to DIR")
    say(f"To correct clusters in the browser: jule serve {home}")
    write_report(
        finished,
        lambda show: Report.of_run(finished, results=results, images=data.samples, progress=show),
    )


def _say_taken_over(session: EditSession) -> None:
    """Print how many corrections hold in a new run; a warning has said why others do not."""
    editor = session.editor
    # The number of clusters of another run was chosen for that one.
    given = [one for one in editor.log.in_effect if one.kind != "cut" or editor.base.is_own(one)]
    n_left_out = len(editor.ignored)
    left_out = f", {n_left_out:,} left out" if n_left_out else ""
    taken_over = counted(len(given) - n_left_out, "correction")
    say(f"{taken_over} taken over{left_out}: {session.run.home / EDITS}")
