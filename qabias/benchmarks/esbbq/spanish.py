"""EsBBQ: BBQ for Spain, in Spanish."""

from qabias.benchmarks.esbbq import ESBBQ
from qabias.benchmarks.esbbq.questions import SpainQuestions

BENCHMARK = SpainQuestions(ESBBQ, "EsBBQ: BBQ for Spain, in Spanish", "es")
