"""`jule reproduce`: one command for all experiments."""

import pytest
from typer.testing import CliRunner

from jule.cli import app
from jule.paper.records import read_record, write_record


@pytest.fixture
def reproduce(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def reproduce(*arguments):
        return CliRunner().invoke(app, ["reproduce", *arguments])

    return reproduce


def test_experiments_are_listed_with_what_is_measured(reproduce, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for arguments in ((), ("--list",)):
        done = reproduce(*arguments)
        assert done.exit_code == 0
        for shown in (
            "raw-gdl ",
            "0 of 7 measured; all of them take 5 min",
            "joint ",
            "0 of 27 measured",
        ):
            assert shown in done.output
        assert max(map(len, done.output.splitlines())) <= 80
        assert done.output.startswith("no folder results: run this in a checkout, or name it with ")


def listed(output, name):
    """Return the lines of one experiment as one text."""
    lines = output.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"{name} "))
    end = next(n for n in range(start + 1, len(lines)) if not lines[n].startswith(" "))
    return " ".join(" ".join(lines[start:end]).split())


def test_the_list_says_how_many_numbers_reach_the_papers_and_which_data_is_missing(
    reproduce, tmp_path, monkeypatch
):
    monkeypatch.setenv("JULE_DATA", str(tmp_path / "nothing"))
    for name, nmi in (("usps", 0.9), ("umist", 0.1)):
        record = {"scores": {"nmi": nmi, "ac": nmi}, "settings": {}}
        write_record(tmp_path / f"results/clustering/raw/k-means/{name}-0.json", record)
    found = listed(reproduce("--list").output, "table3")
    assert "0 of 335 measured" in found, "the records have other settings"
    assert "1 of 2 numbers match or beat the paper's" in found
    assert "missing: umist, coil20," in found


def test_a_damaged_record_does_not_end_the_list(reproduce, tmp_path):
    path = tmp_path / "results" / "raw-gdl" / "usps.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"scores": ')
    done = reproduce("--list")
    assert done.exit_code == 0
    assert "a result cannot be read (results/raw-gdl/usps.json is not a result" in listed(
        done.output, "raw-gdl"
    )
    assert "embedding" in done.output


def test_an_experiment_is_measured_once_and_its_table_printed(reproduce, tmp_path):
    done = reproduce("raw-gdl", "--datasets", "digits", "--results", "mine")
    assert done.exit_code == 0, done.output
    assert done.output.startswith("digits      paper")
    assert "| NMI / AC |" in done.output
    path = tmp_path / "mine" / "raw-gdl" / "digits.json"
    record = read_record(path)
    again = reproduce("raw-gdl", "--datasets", "digits", "--results", "mine")
    note = "1 of these results were read from mine; --results FOLDER, with another folder, "
    first, rest = again.output.split(note)
    assert first + rest.removeprefix("measures them anew\n") == done.output
    assert read_record(path) == record


def test_tables_are_written_into_the_pages_of_a_checkout(reproduce, tmp_path):
    page = tmp_path / "README.md"
    page.write_text("<!-- results: raw-gdl -->\n<!-- end -->\n")
    (tmp_path / "results").mkdir()
    done = reproduce("tables")
    assert done.output == "wrote README.md\n"
    assert page.read_text().startswith("<!-- results: raw-gdl -->\n| NMI / AC |")
    assert reproduce("tables").output == "all tables are up to date\n"


def test_all_names_the_experiments_whose_data_is_not_there(reproduce, tmp_path, monkeypatch):
    monkeypatch.setenv("JULE_DATA", str(tmp_path / "nothing"))
    done = reproduce("all", "--results", "mine")
    assert done.exit_code == 0
    assert "cifar10 is left out: cifar10 not found in $JULE_DATA" in done.output
    assert "faces is left out: ytf-frames, lfw not found" in done.output
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize("arguments", [["raw-gdl", "--datasets", "digits"], ["--list"]])
def test_results_go_to_a_folder(reproduce, tmp_path, arguments):
    (tmp_path / "mine").write_text("notes")
    done = reproduce(*arguments, "--results", "mine")
    assert done.exit_code == 1
    assert "mine is a file: give " in done.output
    assert (tmp_path / "mine").read_text() == "notes"


def test_other_results_are_printed_and_not_written_into_the_pages(reproduce, tmp_path):
    page = tmp_path / "README.md"
    page.write_text("<!-- results: raw-gdl -->\nold\n<!-- end -->\n")
    (tmp_path / "mine").mkdir()
    done = reproduce("tables", "--results", "mine")
    assert done.exit_code == 0, done.output
    assert "| NMI / AC |" in done.output
    assert "old" in page.read_text()


@pytest.mark.parametrize("content", ["[]", "{}", '{"scores": null}', "[" * 100_000, "\xff"])
@pytest.mark.parametrize("arguments", [["tables"], ["raw-gdl", "--datasets", "usps"]])
def test_a_damaged_record_is_named_with_what_to_do(
    reproduce, tmp_path, data_folder, arguments, content
):
    path = tmp_path / "results" / "raw-gdl" / "usps.json"
    path.parent.mkdir(parents=True)
    path.write_text(content, encoding="latin-1")
    done = reproduce(*arguments)
    output = " ".join(done.output.split())
    assert done.exit_code == 1
    assert "raw-gdl" in output
    assert "Move it away to measure it again" in output
    assert "unexpected" not in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["jiont"], "unknown experiment 'jiont'. Did you mean 'joint'?"),
        (["raw-gdl", "--seeds", "3"], "raw-gdl has no option --seeds; it has --datasets"),
        (["joint", "--preset", "papre"], "unknown preset 'papre'. Did you mean 'paper'?"),
        (["joint", "--datasets", "mnits"], "unknown data set 'mnits'. Did you mean 'mnist'"),
        (["all", "--datasets", "usps"], "--datasets applies to a single experiment, not to 'all'"),
        (["tables", "--preset", "paper"], "--preset applies to a single experiment, not to"),
        (["tables", "--results", "gone"], "there is no folder gone: nothing can be rendered"),
        (["raw-gdl", "--datasets", ","], "--datasets names nothing: leave it out, or give names"),
        (["embedding", "--methods", ""], "--methods names nothing: leave it out, or give names"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(reproduce, tmp_path, arguments, message):
    done = reproduce(*arguments)
    assert done.exit_code == 1
    assert message in done.output
    assert "Traceback" not in done.output
    assert list(tmp_path.iterdir()) == []
