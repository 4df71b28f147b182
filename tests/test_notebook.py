"""The tour runs from its first cell to its last, shows what it is meant to show, and is committed as it ran."""

import os
import re

import nbformat
import pytest

from docs.notebooks import make

from .conftest import ROOT

PATH = make.FOLDER / "tour.ipynb"
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
LARGEST = 500_000  # bytes of the committed file
# What each cell shows by its id: kinds of output that must be there.
SHOWN = {
    "install": set(),
    "measure": {"text/html"},
    "look": {"stdout"},
    "figure": {"stdout", "image/svg+xml"},
    "compare": {"text/html"},
    "differences": {"text/html"},
    "stereotypes": {"text/html"},
    "stereotypes-figure": {"image/svg+xml"},
    "examples": {"stdout"},
    "predictions": {"text/html"},
    "official": {"text/html"},
    "push": {"stdout"},
}


def cells_of(notebook):
    return {cell.id: cell for cell in notebook.cells if cell.cell_type == "code"}


def shown_by(cell):
    kinds = set()
    for output in cell.outputs:
        kinds |= {output.name} if output.output_type == "stream" else set(output.get("data", {output.output_type: ""}))
    return kinds


def text_of(cell):
    texts = make.texts_of(cell)  # in the order of a file, which sorts kinds
    return "\n".join(texts[key] for key in sorted(texts))


def without_numbers(cell):
    """The words of what a cell shows; styles, drawings, numbers and the counted ids of cards are left out."""
    text = re.sub(r"<(svg|style)\b.*?</\1>", "", text_of(cell), flags=re.DOTALL)
    return re.sub(r"[-+−]?\d[\d.,]*", "#", re.sub(r"qabias-[0-9a-f]{8}-\d+", "card", text))


@pytest.fixture(scope="module")
def committed():
    return nbformat.read(PATH, as_version=4)


def mirror():
    """The environment that names the mirror of the authors' files, if there is one."""
    folder = os.environ.get("QABIAS_UPSTREAM") or str(ROOT.parent / "shared" / "upstream")
    return {"QABIAS_UPSTREAM": folder} if os.path.isdir(os.path.join(folder, "nyu-mll", "BBQ")) else {}


@pytest.fixture(scope="module")
def executed(committed, tmp_path_factory):
    """The notebook run anew, offline; a cell that ends with an error fails here."""
    home = str(tmp_path_factory.mktemp("hf"))
    return make.clean(make.execute(committed, {**OFFLINE, "HF_HOME": home, **mirror()}))


def test_the_committed_notebook_is_valid_small_and_without_errors(committed):
    nbformat.validate(committed)
    assert PATH.stat().st_size < LARGEST
    assert not [cell.id for cell in cells_of(committed).values() if "error" in shown_by(cell)]
    assert committed == make.clean(committed), "python -m docs.notebooks.make"


def test_the_committed_notebook_names_no_folder_of_a_machine(committed):
    assert make.machine_paths(committed) == []
    folder = "/".join(["", "tmp", "qabias-x1"])
    leak = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(f"print('{folder}/run')")])
    assert make.machine_paths(leak) == [folder]


def test_the_cells_ran_in_order_and_show_what_they_are_meant_to(committed):
    cells = cells_of(committed)
    assert [cell.execution_count for cell in cells.values()] == list(range(1, len(cells) + 1))
    assert list(cells) == list(SHOWN)
    for name, cell in cells.items():
        assert shown_by(cell) >= SHOWN[name]
        for output in cell.outputs:
            if "image/svg+xml" in output.get("data", {}):
                assert output.data["image/svg+xml"].startswith("<svg")


@pytest.mark.slow
def test_every_cell_runs_and_shows_what_is_committed(committed, executed):
    """Offline and on this machine; words must be the same everywhere, numbers of a model within its last digits."""
    made, kept = cells_of(executed), cells_of(committed)
    for name in SHOWN:
        if name == "official" and not mirror():
            continue  # `test_published_texts_beside_ours` says that it is skipped
        assert shown_by(made[name]) == shown_by(kept[name]), name
        assert without_numbers(made[name]) == without_numbers(kept[name]), name


@pytest.mark.slow
def test_without_the_published_texts_the_cell_says_so_and_the_next_ones_run(committed, tmp_path):
    cells = [cell for cell in committed.cells if cell.get("id") in ("official", "push")]
    first = nbformat.v4.new_code_cell(
        'import qabias\nresult = qabias.run("bbq", model="baseline:unknown", config="SES", limit=40)', id="first"
    )
    part = nbformat.v4.new_notebook(cells=[first, *cells], metadata=committed.metadata)
    made = cells_of(make.execute(part, {**OFFLINE, "HF_HOME": str(tmp_path), "QABIAS_UPSTREAM": ""}))
    assert text_of(made["official"]).startswith("The authors' files cannot be had here")
    assert "set QABIAS_UPSTREAM" in text_of(made["official"])
    assert "to send: 1 files" in text_of(made["push"])
