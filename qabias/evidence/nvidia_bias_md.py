"""`bias.md` of NVIDIA's Model Card++, filled with a run."""

from qabias.evidence.content import Evidence
from qabias.evidence.texts import render


def files(evidence: Evidence) -> dict[str, bytes]:
    """The draft of `bias.md`."""
    return render(evidence, "bias.md.j2", "nvidia-bias-md")
