"""`BiasCallback`: measures a model every so many steps of a `transformers.Trainer`, and logs what it finds."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from transformers import Trainer, TrainerCallback

from qabias.api.calls import OptionValue, option_texts, upstream
from qabias.api.given_models import check_given
from qabias.api.result import Result
from qabias.benchmarks import Benchmark, Measure, load_benchmark
from qabias.callbacks.drawing import draw_curve
from qabias.callbacks.measuring import (
    Measurements,
    chosen_measures,
    named_measures,
    point_of,
    preserve_state,
)
from qabias.errors import QabiasError
from qabias.models.loading import LoadedModel
from qabias.models.memory import from_memory
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.distributed import Processes
from qabias.runs.scored import read_scored
from qabias.support.suggest import unknown
from qabias.tables.drawing import Drawing

if TYPE_CHECKING:
    import pandas
    from transformers import PreTrainedTokenizerBase, TrainerControl, TrainerState, TrainingArguments

_log = logging.getLogger(__name__)

_KEY = re.compile(r"[A-Za-z0-9_.-]+")  # what every logger takes
_INSTEAD = "save checkpoints and measure each with `qabias run --model path/to/checkpoint`"


class BiasCallback(TrainerCallback):
    """Measures bias while a model is trained, and logs it to everything that the trainer logs to.

        callback = BiasCallback(trainer, "bbq", every=100, config="Age", limit=400)
        trainer.add_callback(callback)
        trainer.train()
        callback.curve()

    Logged are for every score `eval_NAME_SCORE`, `eval_NAME_SCORE_low` and `eval_NAME_SCORE_high`, the ends of its 95 %
    interval, NaN where undefined; and `eval_NAME_missing`, the largest share of the answers that one of the scores
    lacks, in [0, 1]. A score of which many answers are missing has no interval, but `..._possible_low` and
    `..._possible_high`, between which it lies with them.

    The model is measured as it is in memory, in the precision of its weights. Training goes on as if it had not been
    measured, with the same weights and random numbers. The last step is measured in any case. Every measurement is a
    run folder, `OUTPUT_DIR/qabias/BENCHMARK-CONFIG-.../step-STEP-FINGERPRINT`; its tables are written when training
    ends, or by `qabias score FOLDER`.

    A wrong argument is an error before the first step. What fails later is logged as a warning, kept in `failures`, and
    does not end the training. All arguments that are not described here have the meaning that they have for
    `qabias.run`.

    Args:
        trainer: The trainer, which need not know this callback yet.
        benchmark: Name of the benchmark (see `qabias list`), or the path of a folder of templates.
        every: Steps between two measurements, or "save" to measure whenever the trainer saves.
        at_start: Measure before the first step too, where a curve begins; of a training that is resumed, where it goes
            on.
        scores: Names of the scores that are logged; none for the headline scores.
        name: What stands in the logged names: letters (A to Z), digits, "_", "-" and "."; by default the benchmark,
            and the configuration where it is not the one of all examples.
        tokenizer: Tokenizer of the model; by default the trainer's `processing_class`.
        model_name: What the model is called in signatures; by default the name that it was loaded by.
        limit: Measure at most so many examples, the same ones every time; None for all.

    Attributes:
        name: What stands in the logged names.
        failures: What went wrong, by step.

    Raises:
        QabiasError: If an argument is wrong, the trainer has no tokenizer, or it shards the weights (FSDP, DeepSpeed
            ZeRO-3, tensor parallelism), so that no process has a model that could be asked.
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
        config: str | None = None,
        source: str | None = None,
        fixes: bool = False,
        ask: str | None = None,
        format: str | None = None,
        permutations: int = 1,
        backend: str | None = None,
        length_norm: str = "none",
        parser: str = "default",
        option: Mapping[str, OptionValue] | None = None,
        rules: Mapping[str, str] | None = None,
        limit: int | None = 400,
        seed: int = 0,
        batch_tokens: int | None = None,
        mirror: str | Path | None = None,
    ) -> None:
        if not isinstance(trainer, Trainer):
            raise QabiasError(f"trainer is a {type(trainer).__name__}; give a Trainer of transformers first")
        _refuse_sharded(trainer)
        if every != "save" and (isinstance(every, bool) or not isinstance(every, int) or every < 1):
            raise QabiasError(f'every is {every!r}; give a number of steps, at least 1, or "save"')
        if isinstance(scores, str):
            raise QabiasError(f"scores is the text {scores!r}; give a list of names: scores=[{scores!r}]")
        self._trainer, self._every, self._at_start = trainer, every, at_start
        self._tokenizer = tokenizer or trainer.processing_class
        if self._tokenizer is None:
            raise QabiasError(
                "the trainer has no tokenizer; give it processing_class=..., or the callback tokenizer=..."
            )
        if model_name is not None:
            check_given(model_name, "model_name")
        self._model_name, self._names = model_name, tuple(scores)
        self._benchmark: Benchmark = load_benchmark(benchmark)
        self._question_only = False
        self._measures()
        config = config or self._benchmark.configs[-1]
        whole = config == self._benchmark.configs[-1]
        self.name = (benchmark if whole else f"{benchmark}_{config.replace(',', '_')}") if name is None else name
        if not isinstance(self.name, str) or not _KEY.fullmatch(self.name):
            raise QabiasError(
                f"name is {self.name!r}, which not every logger takes; give letters (A to Z), digits, '_', '-' and '.'"
            )
        arguments = RunArguments(
            benchmark=benchmark,
            config=config,
            source=source or self._benchmark.sources[0],
            fixes=fixes,
            format=format,
            backend=backend,
            length_norm=length_norm,
            parser=parser,
            limit=limit,
            seed=seed,
            options=option_texts(option),
            rules=dict(rules or {}),
            permutations=permutations,
        )
        machine = Machine(batch_tokens=batch_tokens, mirror=upstream(mirror))
        self._measurements = Measurements(arguments, ask, machine, Path(trainer.args.output_dir) / "qabias")
        self._folders: dict[int, Path] = {}
        self._points: dict[int, dict[str, float]] = {}
        self.failures: dict[int, str] = {}

    # What the trainer calls.

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Check everything that can be checked before the first step, and measure where a curve begins."""
        others = self._trainer.callback_handler.callbacks
        if [other.name for other in others if isinstance(other, BiasCallback)].count(self.name) > 1:
            raise QabiasError(f"two callbacks log under the name {self.name!r}; give one of them another, name=...")
        self._folders, self._points, self.failures = {}, {}, {}
        processes = _processes(args)
        with preserve_state(kwargs["model"], kwargs.get("optimizer")):
            _, question, _ = self._measurements.question_of(self._loaded(kwargs["model"]))
        assert question.prompt_format is not None
        self._question_only = question.prompt_format.question_only
        self._measures()
        if state.global_step:
            for step, folder in processes.on_first(lambda: self._measurements.earlier(state.global_step)).items():
                self._keep(step, folder, read_scored(folder).scores)
        if self._at_start:
            self._measure(state, control, kwargs)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Measure every so many steps, and after the last one."""
        if self._every == "save":
            return
        if state.global_step % self._every == 0 or state.global_step >= state.max_steps:
            self._try(state, control, kwargs)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Measure what has just been saved, where that is asked for."""
        if self._every == "save":
            self._try(state, control, kwargs)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Write the tables of all measurements."""
        if not state.is_world_process_zero:
            return
        with preserve_state(kwargs["model"]):
            for step, folder in self._folders.items():
                try:
                    self._measurements.complete(folder)
                except Exception as error:  # a trained model is not lost for its tables
                    _log.warning("%s, step %d: no tables: %s; run `qabias score %s`", self.name, step, error, folder)

    # What came of it.

    @property
    def results(self) -> dict[int, Result]:
        """The measurements by step, with those of the training that was resumed."""
        for folder in self._folders.values():
            self._measurements.complete(folder)
        return {step: Result(folder) for step, folder in sorted(self._folders.items())}

    def curve(self) -> pandas.DataFrame:
        """All measurements by step: columns SCORE, SCORE_low, SCORE_high and `missing`, as logged after `eval_NAME_`.

        Undefined scores are NaN, and so are all of a step whose measurement failed.
        """
        import pandas

        steps = sorted({*self._points, *self.failures})
        columns = list(dict.fromkeys(name for point in self._points.values() for name in point))
        rows = [[self._points.get(step, {}).get(name, math.nan) for name in columns] for step in steps]
        return pandas.DataFrame(rows, index=pandas.Index(steps, name="step"), columns=columns, dtype=float)

    def figure(self, score: str | None = None) -> Drawing:
        """A score over the steps of the training, with its 95 % interval as a band.

        Where many answers are missing, the dot is hollow, and a hatched band is what the score could be with them.
        Steps whose score is undefined, or whose measurement failed, have a cross at the bottom. `score` is one of the
        columns of `curve`, by default the first.
        """
        if not self._folders:
            raise QabiasError("nothing was measured yet, so that there is no curve")
        scores = read_scored(next(iter(self._folders.values()))).scores
        known = named_measures(self._benchmark, scores, self._measures())
        score = score or next(iter(known))
        if score not in known:
            raise unknown("score of the curve", score, known)
        return draw_curve(self.curve(), score, known[score][0], self._benchmark.facts.clusters[0], self.failures)

    # Measuring.

    def _try(self, state: TrainerState, control: TrainerControl, kwargs: Mapping[str, Any]) -> None:
        """Measure; what goes wrong is a warning, because a training of days is worth more than one point of a curve."""
        try:
            self._measure(state, control, kwargs)
        except Exception as error:
            step, why = state.global_step, f"{type(error).__name__}: {error}"
            self.failures[step] = why
            _log.warning("%s was not measured at step %d, training goes on: %s", self.name, step, why)

    def _measure(self, state: TrainerState, control: TrainerControl, kwargs: Mapping[str, Any]) -> None:
        if state.global_step in self._points:
            return
        model = kwargs["model"]
        processes = _processes(self._trainer.args)
        with preserve_state(model, kwargs.get("optimizer")):
            with processes.together():
                loaded = self._loaded(model)
            folder, scores = self._measurements.measure(state.global_step, loaded, processes)
        self._keep(state.global_step, folder, scores)
        # Logging takes back that the trainer wants to log its loss at this step.
        wanted = control.should_log
        self._trainer.log({f"eval_{self.name}_{key}": value for key, value in self._points[state.global_step].items()})
        control.should_log = wanted

    def _keep(self, step: int, folder: Path, scores: Mapping[str, Any]) -> None:
        self._points[step] = point_of(self._benchmark, scores, self._measures())
        self._folders[step] = folder
        self.failures.pop(step, None)

    def _measures(self) -> tuple[Measure, ...]:
        return chosen_measures(self._benchmark, self._names, self._question_only)

    def _loaded(self, model: Any) -> LoadedModel:
        # A model that was made from a configuration has no name of its own.
        name = self._model_name or getattr(model, "name_or_path", "") or Path(self._trainer.args.output_dir).name
        if any(hasattr(weight, "device_mesh") for weight in model.parameters()):
            raise QabiasError(f"the weights are shared out over several processes; {_INSTEAD}")
        check_given(name, "model_name")  # a folder may be called anything
        return from_memory(model, self._tokenizer, name)


def _refuse_sharded(trainer: Trainer) -> None:
    """Refuse a trainer whose processes hold a share of the weights each."""
    method = None
    if trainer.is_fsdp_enabled or getattr(trainer, "is_fsdp_xla_enabled", False):
        method = "FSDP"
    elif trainer.is_deepspeed_enabled:
        plugin = trainer.accelerator.state.deepspeed_plugin
        method = "DeepSpeed ZeRO-3" if plugin.zero_stage == 3 else None
    if method:
        raise QabiasError(f"{method} shares the weights out over the processes, so that none can be asked; {_INSTEAD}")


def _processes(args: TrainingArguments) -> Processes:
    """The processes of the training, connected by the trainer itself."""
    if args.world_size == 1:
        return Processes()
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        raise QabiasError(f"the processes of this training are not connected by torch.distributed; {_INSTEAD}")
    return Processes(args.process_index, args.world_size)
