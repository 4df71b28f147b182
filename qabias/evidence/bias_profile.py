"""A bias profile: groups, hazards, measures, results, and what was not measured, on one page."""

from qabias.evidence.content import Evidence
from qabias.evidence.texts import render


def files(evidence: Evidence) -> dict[str, bytes]:
    """The page."""
    return render(evidence, "bias-profile.html.j2", "bias-profile")
