"""The benchmarks: one folder each, and what they have in common."""

from qabias.benchmarks.base import Benchmark as Benchmark
from qabias.benchmarks.base import Origin as Origin
from qabias.benchmarks.base import make_origin as make_origin
from qabias.benchmarks.prompt_format import PromptFormat as PromptFormat
from qabias.benchmarks.prompt_format import choose_format as choose_format
from qabias.benchmarks.registry import benchmark_names as benchmark_names
from qabias.benchmarks.registry import default_name as default_name
from qabias.benchmarks.registry import load_benchmark as load_benchmark
from qabias.benchmarks.registry import loadable_benchmarks as loadable_benchmarks
from qabias.scores.facts import ALL as ALL
from qabias.scores.facts import Facts as Facts
from qabias.scores.facts import Measure as Measure
