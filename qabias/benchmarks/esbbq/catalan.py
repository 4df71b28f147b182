"""CaBBQ: BBQ for Spain, in Catalan."""

from qabias.benchmarks.esbbq import CABBQ
from qabias.benchmarks.esbbq.questions import SpainQuestions

BENCHMARK = SpainQuestions(CABBQ, "CaBBQ: BBQ for Spain, in Catalan", "ca")
