"""The bias section of a model card on the Hugging Face Hub, with the results file if the dataset is known."""

from qabias.evidence.content import Evidence
from qabias.evidence.texts import render
from qabias.hub.results import result_files


def files(evidence: Evidence, dataset: str = "") -> dict[str, bytes]:
    """The section, and the results file for a dataset on the Hub."""
    run = evidence.run
    results = result_files(run.folder, run.arguments.model, dataset, sample=True) if dataset else {}
    return {**render(evidence, "model-card.md.j2", "model-card"), **results}
