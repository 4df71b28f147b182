"""The notebooks of the documentation: run in a fresh kernel, cleaned, and written with their outputs.

    python -m docs.notebooks.make           every notebook of this folder, in place

The authors' files are downloaded, or taken from the mirror that QABIAS_UPSTREAM names.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

from qabias.support.files import write_text

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
NEEDS_PUBLISHED = "needs-published-files"
"""Tag of a cell that needs the authors' files, from the network or from a mirror."""

# A path below a folder that only one machine has. What belongs to an address or to a longer relative path is none.
_MACHINE_PATH = re.compile(
    r"(?<![\w.:/<])(?:/(?:home|Users|root|tmp|private|var|opt|usr|mnt|srv|work)/|[A-Z]:\\)[\w.-]+"
)
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def execute(notebook: nbformat.NotebookNode, environment: dict[str, str] | None = None) -> nbformat.NotebookNode:
    """A notebook after all its cells have run, in an empty folder and a fresh kernel of this Python.

    Args:
        notebook: It stays as it is.
        environment: Variables beside those of this process.

    Raises:
        nbclient.exceptions.CellExecutionError: If a cell ends with an error.
    """
    done = nbformat.from_dict(notebook)
    # Without folders to look into, the kernel is that of this Python and no other that a user has registered.
    kernel = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    with tempfile.TemporaryDirectory() as folder:
        # The checkout stands first on the path, so that it is what the notebook shows. One thread gives the same last
        # digits everywhere. IPython would keep its history in the user's folder.
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        own = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "IPYTHONDIR": folder}
        client = NotebookClient(done, km=kernel, timeout=1200, resources={"metadata": {"path": folder}})
        client.execute(env={**os.environ, **own, **(environment or {})})
    return done


def clean(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """An executed notebook as it is committed: without progress bars, times and what names the machine.

    Raises:
        ValueError: If an output holds a path of this machine.
    """
    done = nbformat.from_dict(notebook)
    done.metadata = nbformat.from_dict(_METADATA)
    for cell in done.cells:
        cell.metadata = nbformat.from_dict({"tags": cell.metadata.tags} if "tags" in cell.metadata else {})
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    found = machine_paths(done)
    if found:
        raise ValueError(f"outputs name folders of this machine: {', '.join(found)}")
    nbformat.validate(done)
    return done


def machine_paths(notebook: nbformat.NotebookNode) -> list[str]:
    """Paths in the text of a notebook's sources and outputs that only one machine has, sorted."""
    texts = [text for cell in notebook.cells for text in (cell.source, *texts_of(cell).values())]
    return sorted({path for text in texts for path in _MACHINE_PATH.findall(text)})


def texts_of(cell: nbformat.NotebookNode) -> dict[str, str]:
    """The text in the outputs of a cell, by the kind of text and its place; images are left out."""
    texts = {}
    for place, output in enumerate(cell.get("outputs", [])):
        if output.output_type == "stream":
            texts[f"{place} {output.name}"] = output.text
        elif output.output_type == "error":
            texts[f"{place} error"] = "\n".join(output.traceback)
        else:
            kinds = {kind: value for kind, value in output.data.items() if kind.startswith("text/")}
            texts.update({f"{place} {kind}": value for kind, value in kinds.items()})
    return texts


def main() -> None:
    """Make every notebook of this folder anew."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        sys.stderr.write(f"{path.name}\n")
        notebook = nbformat.read(path, as_version=4)
        write_text(path, nbformat.writes(clean(execute(notebook))) + "\n")


if __name__ == "__main__":
    main()
