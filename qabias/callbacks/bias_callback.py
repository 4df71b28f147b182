"""`BiasCallback`: measures a model at intervals during training with `transformers.Trainer`, and logs the scores."""

from __future__ import annotations

import json
import logging
import math
import random
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from transformers import Trainer, TrainerCallback

from qabias.api.arguments import Arguments, run_arguments
from qabias.api.given_models import check_given
from qabias.api.result import Result
from qabias.benchmarks import Benchmark, Measure, load_benchmark
from qabias.benchmarks.headline import meaningful, named_measures, point_of
from qabias.building.sources import using_mirror
from qabias.callbacks.drawing import draw_curve
from qabias.errors import QabiasError
from qabias.models.loading import LoadedModel
from qabias.models.memory import evaluating, from_memory
from qabias.runs.distributed import Processes
from qabias.runs.folder import SCORES_FILE
from qabias.runs.opened import Run
from qabias.runs.question import load_examples
from qabias.runs.run import prepare
from qabias.runs.run import run as run_benchmark
from qabias.support.suggest import unknown
from qabias.support.trackers import log_scores
from qabias.tables.drawing import Drawing

if TYPE_CHECKING:
    import pandas
    from transformers import PreTrainedTokenizerBase, TrainerControl, TrainerState, TrainingArguments


def chosen_measures(benchmark: Benchmark, names: Sequence[str], question_only: bool) -> tuple[Measure, ...]:
    """The logged scores."""
    known = [measure.name for measure in benchmark.facts.measures]
    for name in names:
        if name not in known:
            raise unknown(f"score of {benchmark.name}", name, known)
    chosen = meaningful(benchmark, question_only, names or benchmark.facts.tiles)
    without = [name for name in names if name not in {measure.name for measure in chosen}]
    if without:
        raise QabiasError(f"{', '.join(without)}: undefined if the model gets no context", "choose other scores")
    return chosen


@contextmanager
def preserve_state(model: torch.nn.Module, optimizer: Any = None) -> Iterator[None]:
    """Prepare a model for questions, and restore model and random numbers afterwards."""
    modules = [(module, dict(vars(module)), dict(module._buffers)) for module in model.modules()]
    try:
        with _random_numbers_kept(), evaluating(model):
            _set_mode(optimizer, "eval")
            if "_original_forward" in vars(model):  # accelerate keeps it there
                vars(model)["forward"] = model._original_forward
            yield
    finally:
        for module, attributes, buffers in modules:
            _put_back(vars(module), attributes)
            _put_back(module._buffers, buffers)
        _set_mode(optimizer, "train")
        if any(weight.is_cuda for weight in model.parameters()):
            torch.cuda.empty_cache()


@contextmanager
def _random_numbers_kept() -> Iterator[None]:
    states = random.getstate(), np.random.get_state()  # noqa: NPY002  # the generator that training uses
    # Without earlier use of CUDA there is no state to keep.
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    mps_state = torch.mps.get_rng_state() if torch.backends.mps.is_available() else None
    try:
        with torch.random.fork_rng(devices, device_type="cuda"):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002  # the same
        if mps_state is not None:
            torch.mps.set_rng_state(mps_state)


def _set_mode(optimizer: Any, mode: str) -> None:
    change = getattr(optimizer, mode, None)
    if callable(change):
        change()


def _put_back(there: dict[str, Any], before: dict[str, Any]) -> None:
    """Restore a dictionary in place."""
    for name in [name for name in there if name not in before]:
        del there[name]
    there.update(before)


_log = logging.getLogger(__name__)

_KEY = re.compile(r"[A-Za-z0-9_.-]+")  # valid in every logger
_ARGUMENTS = (
    "config source fixes ask format permutations backend length_norm parser option rules seed batch_tokens mirror"
)
_INSTEAD = "save checkpoints and measure each with `qabias run --model path/to/checkpoint`"


class BiasCallback(TrainerCallback):
    """Measures bias during training, and logs it to all loggers of the trainer.

        callback = BiasCallback(trainer, "bbq", every=100, config="Age", limit=400)
        trainer.add_callback(callback)
        trainer.train()
        callback.curve()

    Logged for every score: `eval_NAME_SCORE`, and `eval_NAME_SCORE_low` and `eval_NAME_SCORE_high`, the ends of its 95%
    confidence interval, NaN if undefined. Also logged: `eval_NAME_missing`, the largest share of missing answers of any
    score, in [0, 1]. If many answers are missing, a score has no interval but the possible range `..._possible_low` to
    `..._possible_high`.

    The model is measured in memory, in the precision of its weights. Training continues with the same weights and
    random numbers as without measurements. The last step is always measured. Every measurement is a run folder,
    `OUTPUT_DIR/qabias/BENCHMARK-CONFIG-.../step-STEP-FINGERPRINT`.

    A wrong argument is an error before the first step. Later failures are logged as warnings, kept in `failures`, and
    do not stop the training. config, source, fixes, ask, format, permutations, backend, length_norm, parser, option,
    rules, seed, batch_tokens and mirror have their meaning in `qabias.run`.

    Args:
        trainer: The trainer, before or after it has this callback.
        benchmark: Name of the benchmark (see `qabias list`), or the path of a folder of templates.
        every: Steps between two measurements, or "save" to measure whenever the trainer saves.
        at_start: Also measure before the first step, or the first step after resuming.
        scores: Names of the logged scores [headline scores].
        name: NAME in the logged names: letters (A to Z), digits, "_", "-" and "." [benchmark and config].
        tokenizer: Tokenizer of the model [the trainer's `processing_class`].
        model_name: Name of the model in signatures [the name it was loaded by].
        limit: Maximum number of examples, the same every time; None for all.

    Attributes:
        name: NAME in the logged names.
        failures: Errors by step.

    Raises:
        QabiasError: If an argument is wrong, or the trainer has no tokenizer or shards the weights (FSDP, DeepSpeed
            ZeRO-3, tensor parallelism).
    """

    def __init__(
        self,
        trainer: Trainer,
        benchmark: str,
        *,
        every: int | Literal["save"] = 500,
        at_start: bool = True,
        scores: Sequence[str] = (),
        name: str | None = None,
        tokenizer: PreTrainedTokenizerBase | None = None,
        model_name: str | None = None,
        limit: int | None = 400,
        **others: Any,
    ) -> None:
        if not isinstance(trainer, Trainer):
            raise QabiasError(f"trainer is a {type(trainer).__name__}", "pass a transformers Trainer")
        _refuse_sharded(trainer)
        if every != "save" and (isinstance(every, bool) or not isinstance(every, int) or every < 1):
            raise QabiasError(f"every is {every!r}", 'pass a number of steps, at least 1, or "save"')
        if isinstance(scores, str):
            raise QabiasError(f"scores is the text {scores!r}", f"pass a list of names: scores=[{scores!r}]")
        self._trainer, self._every, self._at_start = trainer, every, at_start
        self._tokenizer = tokenizer or trainer.processing_class
        if self._tokenizer is None:
            fix = "pass processing_class=... to the trainer, or tokenizer=... to the callback"
            raise QabiasError("the trainer has no tokenizer", fix)
        if model_name is not None:
            check_given(model_name, "model_name")
        self._model_name, self._names = model_name, tuple(scores)
        self._benchmark: Benchmark = load_benchmark(benchmark)
        self._question_only = False
        self._measures()
        if unexpected := others.keys() - {*_ARGUMENTS.split()}:
            raise TypeError(f"BiasCallback got unexpected arguments: {', '.join(sorted(unexpected))}")
        asked = Arguments(benchmark, limit=limit, progress=False, **others)
        config = asked.config or self._benchmark.configs[-1]
        whole = config == self._benchmark.configs[-1]
        self.name = (benchmark if whole else f"{benchmark}_{config.replace(',', '_')}") if name is None else name
        if not isinstance(self.name, str) or not _KEY.fullmatch(self.name):
            raise QabiasError(
                f"name is {self.name!r}, which some loggers refuse", "use letters (A to Z), digits, '_', '-' and '.'"
            )
        source = asked.source or self._benchmark.sources[0]
        arguments, self._machine = run_arguments(replace(asked, config=config, source=source))
        self._ask, self._arguments = asked.ask, arguments.resolve(self._machine)
        with using_mirror(asked.mirror):
            self._benchmark.check_config(config)
            self._examples = load_examples(self._arguments)
        identity = json.dumps({**asdict(self._arguments), "model": "", "ask": asked.ask}, sort_keys=True)
        name = f"{benchmark}-{arguments.config}-{zlib.crc32(identity.encode()):08x}"
        self._folder = Path(trainer.args.output_dir) / "qabias" / name
        self._folders: dict[int, Path] = {}
        self._points: dict[int, dict[str, float]] = {}
        self.failures: dict[int, str] = {}

    # Called by the trainer.

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Check all arguments before the first step, and measure at the start."""
        others = self._trainer.callback_handler.callbacks
        if [other.name for other in others if isinstance(other, BiasCallback)].count(self.name) > 1:
            raise QabiasError(f"two callbacks log under the name {self.name!r}", "pass another name=... to one of them")
        self._folders, self._points, self.failures = {}, {}, {}
        with preserve_state(kwargs["model"], kwargs.get("optimizer")):
            loaded = self._loaded(kwargs["model"])
            arguments = replace(self._arguments, model=loaded.name).resolve(ask=self._ask, handed_over=loaded)
            *_, question = prepare(arguments, self._examples, self._machine, loaded, self._folder)
        assert question.prompt_format is not None
        self._question_only = question.prompt_format.question_only
        self._measures()
        if state.global_step:
            for step, folder in _processes(args).on_first(lambda: self._earlier(state.global_step)).items():
                self._keep(step, Run.scored(folder))
        if self._at_start:
            self._measure(state, control, kwargs)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Measure at each interval, and after the last step."""
        if self._every == "save":
            return
        if state.global_step % self._every == 0 or state.global_step >= state.max_steps:
            self._try(state, control, kwargs)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Measure a saved model if requested."""
        if self._every == "save":
            self._try(state, control, kwargs)

    # Results.

    @property
    def results(self) -> dict[int, Result]:
        """The measurements by step, including those before resuming."""
        return {step: Result(folder) for step, folder in sorted(self._folders.items())}

    def curve(self) -> pandas.DataFrame:
        """All measurements by step: columns SCORE, SCORE_low, SCORE_high and `missing`, as logged after `eval_NAME_`.

        Undefined scores are NaN, and so are all scores of a failed measurement.
        """
        import pandas

        steps = sorted({*self._points, *self.failures})
        columns = list(dict.fromkeys(name for point in self._points.values() for name in point))
        rows = [[self._points.get(step, {}).get(name, math.nan) for name in columns] for step in steps]
        return pandas.DataFrame(rows, index=pandas.Index(steps, name="step"), columns=columns, dtype=float)

    def figure(self, score: str | None = None) -> Drawing:
        """A score over the training steps, with its 95% confidence interval as a band.

        If many answers are missing, the dot is hollow, and a hatched band shows the possible range. A cross at the
        bottom marks steps with an undefined score or a failed measurement. `score` is a column of `curve` [the first].
        """
        if not self._folders:
            raise QabiasError("no step was measured yet", "train first")
        scores = Run.scored(next(iter(self._folders.values()))).scores
        known = named_measures(self._benchmark, scores, self._measures())
        score = score or next(iter(known))
        if score not in known:
            raise unknown("score of the curve", score, known)
        return draw_curve(self.curve(), score, known[score][0], self._benchmark.facts.clusters[0], self.failures)

    # Measuring.

    def _try(self, state: TrainerState, control: TrainerControl, kwargs: Mapping[str, Any]) -> None:
        """Measure; a failure is a warning, because the training is worth more than one measurement."""
        try:
            self._measure(state, control, kwargs)
        except Exception as error:
            step, why = state.global_step, f"{type(error).__name__}: {error}"
            self.failures[step] = why
            _log.warning("%s was not measured at step %d (training continues): %s", self.name, step, why)

    def _measure(self, state: TrainerState, control: TrainerControl, kwargs: Mapping[str, Any]) -> None:
        if state.global_step in self._points:
            return
        processes = _processes(self._trainer.args)
        with preserve_state(kwargs["model"], kwargs.get("optimizer")):
            with processes.together():
                loaded = self._loaded(kwargs["model"])
            run = run_benchmark(
                replace(self._arguments, model=loaded.name),
                self._folder / f"step-{state.global_step:08d}-{loaded.version.rpartition('-')[2]}",
                self._machine,
                ask=self._ask,
                handed_over=loaded,
                examples=self._examples,
                processes=processes,
            )
        if run.n_missing_parts:
            raise QabiasError(
                f"{run.folder}: {run.n_missing_parts} parts are missing.", "Use an output_dir that all processes share."
            )
        self._keep(state.global_step, run)
        point = self._points[state.global_step]
        # Logging would reset the trainer's plan to log its loss at this step.
        wanted = control.should_log
        self._trainer.log({f"eval_{self.name}_{key}": value for key, value in point.items()})
        control.should_log = wanted
        if state.is_world_process_zero:
            callbacks = self._trainer.callback_handler.callbacks
            own = {type(other).__name__.removesuffix("Callback").lower() for other in callbacks}
            log_scores(self.name, point, run.signature, state.global_step, own)

    def _keep(self, step: int, run: Run) -> None:
        self._points[step] = point_of(self._benchmark, run.scores, self._measures())
        self._folders[step] = run.folder
        self.failures.pop(step, None)

    def _earlier(self, step: int) -> dict[int, Path]:
        """The measurement folders before a step of a resumed training; the last one for each step."""
        measured = [path.parent for path in self._folder.glob(f"step-*/{SCORES_FILE}")]
        measured = [folder for folder in measured if _step(folder) < step]
        return {_step(folder): folder for folder in sorted(measured, key=lambda each: (Run.open(each).created, each))}

    def _measures(self) -> tuple[Measure, ...]:
        return chosen_measures(self._benchmark, self._names, self._question_only)

    def _loaded(self, model: Any) -> LoadedModel:
        # A model made from a config has no name.
        name = self._model_name or getattr(model, "name_or_path", "") or Path(self._trainer.args.output_dir).name
        if any(hasattr(weight, "device_mesh") for weight in model.parameters()):
            raise QabiasError("the weights are sharded over several processes", _INSTEAD)
        check_given(name, "model_name")  # a folder can have any name
        return from_memory(model, self._tokenizer, name)


def _step(folder: Path) -> int:
    return int(folder.name.split("-")[1])


def _refuse_sharded(trainer: Trainer) -> None:
    """Refuse a trainer whose processes each hold a share of the weights."""
    method = None
    if trainer.is_fsdp_enabled or getattr(trainer, "is_fsdp_xla_enabled", False):
        method = "FSDP"
    elif trainer.is_deepspeed_enabled:
        plugin = trainer.accelerator.state.deepspeed_plugin
        method = "DeepSpeed ZeRO-3" if plugin.zero_stage == 3 else None
    if method:
        raise QabiasError(f"{method} shards the weights: no process has a complete model", _INSTEAD)


def _processes(args: TrainingArguments) -> Processes:
    """The processes of the training, connected by the trainer."""
    if args.world_size == 1:
        return Processes()
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        raise QabiasError("the processes of this training are not connected by torch.distributed", _INSTEAD)
    return Processes(args.process_index, args.world_size, survives=True)
