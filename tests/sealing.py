"""Make the manifest of a run agree with files that a test has changed."""

from pathlib import Path

from jule.runs.manifest import describe, manifest_bytes, read_manifest


def reseal(folder):
    """Write the manifest again: the files in it that exist are as they should be."""
    folder = Path(folder)
    names = [name for name in read_manifest(folder) if (folder / name).is_file()]
    found = {name: describe((folder / name).read_bytes()) for name in names}
    (folder / "manifest.json").write_bytes(manifest_bytes(found))
