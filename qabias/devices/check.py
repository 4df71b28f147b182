"""Measures a device, case by case, until everything is measured or the time is over."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qabias.devices import loops, questions
from qabias.devices.cases import Case, cases
from qabias.devices.correct import SMALL_BUDGET, Reference, equality, invariance, make_reference
from qabias.devices.costs import Costs
from qabias.devices.deadline import Deadline
from qabias.devices.device import Device
from qabias.devices.outcome import FAILS, Outcome, not_measured
from qabias.devices.recovery import recovery, why_not
from qabias.devices.speed import PILOT_QUESTIONS, Speed
from qabias.devices.subjects import MakeScorer, make_model, make_scorer, tokenizer_of
from qabias.errors import QabiasError
from qabias.models.loading import DTYPES, LoadedModel
from qabias.scorers.batches import is_out_of_memory
from qabias.support.suggest import first_line

SPEED_SHARE = 0.005
"""The share of all time that asking once takes where speed is measured."""

REFERENCE_SHARE = 0.1
"""The largest share of all time that one reference in float64 may take."""

PARTS_OF_SPEED = 8
"""How often questions are asked where speed is measured; the model alone, trials and a slower peer count too."""

RECOVERY_QUESTIONS = 256
"""Most questions that are asked where memory runs out."""


@dataclass(frozen=True)
class Row:
    """What was found of a case."""

    case: Case
    outcomes: Mapping[str, Outcome]
    notes: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """As it stands in the file."""
        case = self.case
        return {
            "scorer": case.way.name,
            "shape": case.shape.name,
            "dtype": case.dtype,
            "measures": {name: outcome.as_json() for name, outcome in self.outcomes.items()},
            "notes": list(self.notes),
        }


@dataclass
class Check:
    """A check of a device."""

    device: Device
    rates: dict[str, float] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    seconds: float = 0.0
    n_cases: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether every case has a row."""
        return len(self.rows) == self.n_cases

    @property
    def is_right(self) -> bool:
        """Whether nothing fails."""
        return all(outcome.state != FAILS for row in self.rows for outcome in row.outcomes.values())


class _Stop(Exception):
    """A measure that cannot be made, and why; those that need it cannot either."""


def check_device(
    name: str,
    sizes: str,
    seconds: float,
    tell: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
    make: MakeScorer = make_scorer,
    keep: Callable[[Check], None] = lambda found: None,
) -> Check:
    """Measure a device."""
    deadline = Deadline(seconds, clock)
    device = Device(name)
    found = Check(device)
    for dtype in DTYPES:
        tell(f"matrix products in {dtype}")
        try:
            found.rates[dtype] = device.product_rate(dtype)
        except RuntimeError as error:  # also what a device does not know
            found.problems[dtype] = first_line(error)
    cpu_rate = Device("cpu").product_rate("float64")
    costs = Costs(device, found.rates, cpu_rate)
    chosen = cases(sizes, device.usual_dtype)
    found.n_cases = len(chosen)
    for case in chosen:
        tell(case.name)
        found.rows.append(_CaseCheck(case, device, deadline, costs, found, make).run())
        found.seconds = deadline.spent
        keep(found)
    return found


class _CaseCheck:
    """The measures of one case, each of which may need what those before it made."""

    def __init__(
        self, case: Case, device: Device, deadline: Deadline, costs: Costs, found: Check, make: MakeScorer
    ) -> None:
        self._case, self._device, self._deadline, self._costs = case, device, deadline, costs
        self._found, self._make_scorer = found, make
        self._loaded: LoadedModel | None = None
        self._expected = self._prepared = 0.0
        self._scorer: Any = None
        self._reference: Reference | None = None
        self._speed_of: Speed | None = None

    def run(self) -> Row:
        """Make all measures; what stops one of them is its outcome."""
        measures = {
            "equality": self._equality,
            "invariance": self._invariance,
            "speed": self._speed,
            "peer": self._peer,
            "recovery": self._recovery,
        }
        outcomes = {}
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            for name in self._case.measures:
                outcomes[name] = self._measured(measures[name])
        notes = dict.fromkeys(text for one in warned if (text := str(one.message)).startswith(self._case.way.scorer))
        return Row(self._case, outcomes, tuple(notes))

    def _measured(self, measure: Callable[[], Outcome]) -> Outcome:
        began, self._expected, self._prepared = self._deadline.spent, 0.0, 0.0
        outcome = self._outcome(measure)
        self._costs.learn(self._expected, self._deadline.spent - began - self._prepared)
        return outcome

    def _outcome(self, measure: Callable[[], Outcome]) -> Outcome:
        try:
            return measure()
        except _Stop as stop:
            return not_measured(str(stop))
        except QabiasError as error:
            return Outcome(FAILS, first_line(error))
        except RuntimeError as error:  # what kernels raise, and what a device does not know
            if is_out_of_memory(error):
                return not_measured(f"memory (ran out: {first_line(error)})")
            return Outcome(FAILS, f"{type(error).__name__}: {first_line(error)}")

    def _allow(self, seconds: float) -> None:
        refusal = self._deadline.refusal(seconds)
        if refusal:
            raise _Stop(refusal)
        self._expected += seconds

    def _model(self) -> LoadedModel:
        if self._loaded is None:
            case = self._case
            if case.dtype in self._found.problems:
                raise _Stop(f"{case.dtype} (the device: {self._found.problems[case.dtype]})")
            shortage = self._costs.shortage(case)
            if shortage:
                raise _Stop(shortage)
            self._allow(self._costs.building(case))
            self._prepare()
            self._loaded = make_model(case.shape, case.way, case.dtype, self._device.torch_device)
        return self._loaded

    def _prepare(self) -> None:
        """Read the questions and train a tokenizer, where no case before has done so."""
        began = self._deadline.spent
        tokenizer_of(self._case.shape, self._case.way)
        self._prepared = self._deadline.spent - began

    def _made(self, budget: int | None = None) -> Any:
        return self._make_scorer(self._case.way, self._model(), budget)

    def _usual(self) -> Any:
        if self._scorer is None:
            self._scorer = self._made()
        return self._scorer

    def _referred(self) -> Reference:
        if self._reference is None:
            loaded, case = self._model(), self._case
            seconds = min(self._deadline.left, REFERENCE_SHARE * self._deadline.seconds)
            where, shortage = self._costs.choose_reference(case, seconds)
            if shortage:
                raise _Stop(shortage)
            self._allow(self._costs.reference(case, where))
            self._reference = make_reference(case, loaded, self._device, where, self._costs.n_questions(case))
        return self._reference

    def _equality(self) -> Outcome:
        loaded, reference = self._model(), self._referred()
        self._allow(2 * self._costs.forward(self._case, self._costs.n_questions(self._case)))
        return equality(self._case, reference, self._usual(), loaded, self._device)

    def _invariance(self) -> Outcome:
        reference = self._referred()
        self._allow(2 * self._costs.forward(self._case, self._costs.n_questions(self._case)))
        return invariance(self._case, reference, self._usual(), self._made(SMALL_BUDGET))

    def _measure_of_speed(self) -> Speed:
        """What times the scorer; a pilot tells it how many questions fit."""
        if self._speed_of is None:
            loaded, each = self._model(), SPEED_SHARE * self._deadline.seconds
            self._allow(PARTS_OF_SPEED * each + 3 * self._costs.forward(self._case, PILOT_QUESTIONS))
            self._speed_of = Speed(self._case, loaded, self._device, self._usual(), each)
        return self._speed_of

    def _speed(self) -> Outcome:
        return self._measure_of_speed().measure(self._found.rates[self._case.dtype])

    def _peer(self) -> Outcome:
        speed = self._measure_of_speed()
        self._allow(PARTS_OF_SPEED * SPEED_SHARE * self._deadline.seconds)
        return speed.against_loop()

    def _recovery(self) -> Outcome:
        refusal = why_not(self._device)
        if refusal is not None:
            return refusal
        reference, speed = self._referred(), self._measure_of_speed()
        self._allow(PARTS_OF_SPEED * SPEED_SHARE * self._deadline.seconds)
        items = questions.take(speed.items, RECOVERY_QUESTIONS)
        units = loops.make_loop(self._case.way, self._model().tokenizer, items).units
        return recovery(self._case, self._device, self._made, items, units, reference.largest)
