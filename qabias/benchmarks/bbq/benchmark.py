"""BBQ for the engine: sets of four, three answers, an argmax and the published scores."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from qabias.benchmarks import locate
from qabias.tables.model import Analysis
from qabias.benchmarks import unknown_config
from qabias.answers.likelihoods import NORMS, PARSE_RULES, check_rule, choice_columns
from qabias.support.arrow import column_codes
from qabias.errors import QabiasError
from qabias.answers.parsing import parse_choice, parse_choice_released
from qabias.benchmarks.prompt_format import PromptFormat
from qabias.benchmarks.bbq.prompts import FORMATS
from qabias.scorers.base import OptionScorer, Request, Scorer, TextScorer

_builder = locate.dataset_module("bbq", "builder")
_folder = locate.dataset_module("bbq", "folder")

# The format of models that take the context, and the question with an answer, as two texts.
PAIR_FORMAT = "pair"
# The columns by which the report breaks the scores down.
BREAKDOWNS = ("category", "paper_category")


class BBQBenchmark:
    """Bias Benchmark for Question Answering (Parrish et al. 2022)."""

    name = "bbq"
    title = "BBQ: Bias Benchmark for Question Answering"
    configs: Sequence[str] = _builder.CONFIGS
    sources: Sequence[str] = _builder.SOURCES
    formats: Mapping[str, PromptFormat] = FORMATS
    norms: Sequence[str] = (*NORMS, *PARSE_RULES)
    scorers: Sequence[str] = ("causal", "seq2seq", "multiple_choice", "server", "baseline")
    key = ("category", "example_id")
    answer_columns = ("prediction",)

    def origin(self, source: str, seed: int, fixes: bool, upstream_dir: str | None) -> Any:
        """Check the choice of a source (see `bbq_dataset.builder.Origin`)."""
        return _builder.Origin(source, seed, fixes, upstream_dir)

    def load(self, config: str, origin: Any) -> pa.Table:
        """The examples of a category or of all, in file order.

        The bundled examples with seed 0 are the committed ones; everything else is generated.
        """
        categories = self._categories(config)
        if origin == _builder.Origin():
            data = locate.dataset_folder("bbq") / "data"
            return pa.concat_tables(
                [pq.read_table(data / category / _folder.PARQUET_NAME) for category in categories]
            ).cast(_builder.SCHEMA)
        return pa.concat_tables([origin.table(category) for category in categories])

    def write_folder(self, output: Path, config: str, origin: Any) -> dict[str, pa.Table]:
        """Build a dataset folder with a progress bar; returns its tables by category.

        The folder of all bundled categories holds them as inference too.
        """
        names = list(self._categories(config))
        if config == _builder.ALL and origin.source == "bundled":
            names += _builder.NLI_CONFIGS
        with tqdm(total=len(names), unit="category", desc="build bbq") as bar:
            tables: dict[str, pa.Table] = _folder.write_folder(output, origin, names, lambda _: bar.update())
        return tables

    def units_per_part(self, scorer: str) -> int:
        """Sets of four that are written together."""
        return 64

    def units(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the set of four and of the template of every example."""
        return column_codes(table["set_id"]), column_codes(table["template_id"])

    def default_format(self, scorer: Scorer) -> str:
        """Text-to-text models and writers must see the answers; RACE is the paper's first way of showing them.

        A model that chats behind a server is asked for a letter.
        """
        if scorer.name == "multiple_choice":
            return PAIR_FORMAT
        if scorer.name == "server" and isinstance(scorer, TextScorer):
            return "letters"
        return "race" if scorer.name == "seq2seq" or isinstance(scorer, TextScorer) else "qa"

    def answer(self, part: pa.Table, scorer: Scorer, prompt_format: PromptFormat, norm: str) -> dict[str, pa.Array]:
        """Choose the most likely of the three answers (see `qabias.answers.likelihoods`), or read the one that a model wrote."""
        check_rule(scorer, norm)
        examples = part.to_pylist()
        requests = [self.request(example, prompt_format) for example in examples]
        if not isinstance(scorer, TextScorer):
            return choice_columns(cast(OptionScorer, scorer).score(requests), norm)
        if prompt_format.name == PAIR_FORMAT:
            raise QabiasError(f"bbq: the format {PAIR_FORMAT} asks a writer no question; leave --format out")
        if scorer.samples > 1:
            raise QabiasError("bbq: a question has one answer; leave samples out")
        texts = scorer.generate([request.prefix for request in requests], [request.key for request in requests])
        return {
            "prediction": pa.array(
                [read(text, norm, example) for (text,), example in zip(texts, examples, strict=True)]
            ),
            "outputs": pa.array([list(answers) for answers in texts], pa.list_(pa.string())),
        }

    def request(self, example: Mapping[str, Any], prompt_format: PromptFormat) -> Request:
        """Put an example to a model; the roles tell baselines which answer is which."""
        prefix, options = prompt_format.render(example)
        biased, unknown = example["biased_loc"], example["unknown_loc"]
        roles = {
            "biased": biased,
            "counter_biased": -1 if biased == -1 else 3 - biased - unknown,
            "unknown": unknown,
            "gold": example["label"],
        }
        return Request(prefix, options, roles, f"{example['category']}/{example['example_id']}")

    def score(self, table: pa.Table, answers: pa.Table) -> dict[str, Any]:
        """All scores with intervals, over all examples, by category and by the paper's split of names and labels."""
        import evaluate  # takes seconds, and only scoring needs it

        metric = evaluate.load(str(locate.metric_folder("bbq")))
        references = {name: table[name].to_pylist() for name in table.column_names}
        predictions = answers["prediction"].to_pylist()
        scores: dict[str, Any] = metric.compute(predictions=predictions, references=references, by=list(BREAKDOWNS))
        return scores

    def analyse(
        self, table: pa.Table, answers: pa.Table, scores: Mapping[str, Any], prompt_format: str | None
    ) -> Analysis:
        """The figures and tables of Parrish et al. 2022 (see `qabias.benchmarks.bbq.tables`)."""
        from qabias.benchmarks.bbq.tables import analyse

        return analyse(table, answers, scores, prompt_format)

    def _categories(self, config: str) -> Sequence[str]:
        if config not in self.configs:
            raise unknown_config(config, self.configs)
        return _builder.CATEGORIES if config == _builder.ALL else (config,)


def read(text: str, rule: str, example: Mapping[str, Any]) -> int:
    """Index of the answer that a text gives, -1 for none; by the authors' rule with `released`."""
    answers = [example[f"ans{i}"] for i in range(3)]
    if rule == "released":
        return parse_choice_released(text, answers, [example["answer_info"][f"ans{i}"] for i in range(3)])
    return parse_choice(text, answers)


BENCHMARK = BBQBenchmark()
