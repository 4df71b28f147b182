"""Scorers: ways of querying a model. Each file ends with its description, a `ScorerKind`."""

from qabias.scorers.registry import default_scorer as default_scorer
from qabias.scorers.registry import lasting_options as lasting_options
from qabias.scorers.registry import load_scorer as load_scorer
