"""Why a score of a run is undefined: the text beside every null of `scores.json`.

The metrics give NaN where a denominator is 0, and `write_json` makes null of it. Which denominator it was stands in the
counts beside the score.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

# What must not be 0 for a score to be defined: counts of which the sum is taken, and what it means that there are none.
_Rule = tuple[tuple[str, ...], str]

_ROWS_AMBIG: _Rule = (("n_ambig",), "no example with an ambiguous context")
_ROWS_DISAMBIG: _Rule = (("n_disambig",), "no example with a disambiguated context")


def _answers(context: str) -> _Rule:
    kinds = ("n_biased", "n_counter_biased", "n_unknown")
    return tuple(f"{kind}_{context}" for kind in kinds), "no readable answer to an example with a defined target"


def _persons(context: str) -> _Rule:
    return (f"n_biased_{context}", f"n_counter_biased_{context}"), "no answer other than UNKNOWN"


_PARSED: _Rule = ((), "no readable answer")
_ALIGNED: _Rule = (("n_aligned",), "no readable answer where the right one agrees with the stereotype")
_NONALIGNED: _Rule = (("n_nonaligned",), "no readable answer where the right one disagrees with the stereotype")
_TEST_PRO: _Rule = (("n_test_pro",), "no test hypothesis in the pro form")
_TEST_ANTI: _Rule = (("n_test_anti",), "no test hypothesis in the anti form")
_PRO: _Rule = (("n_pro",), "no disambiguated context that agrees with the stereotype")
_ANTI: _Rule = (("n_anti",), "no disambiguated context that disagrees with the stereotype")
_HYPOTHESES: _Rule = (("n_bias",), "no stereotypical hypothesis")
_SIDE: _Rule = (("n_definite_disambig",), "no answer takes a side")
_BOTH_SIDES: _Rule = (
    (),
    "no answer takes a side in contexts that agree with the stereotype, or in those that disagree",
)

_BBQ: dict[str, tuple[_Rule, ...]] = {
    **{
        f"accuracy_{context}": (rows, _PARSED)
        for context, rows in (("ambig", _ROWS_AMBIG), ("disambig", _ROWS_DISAMBIG))
    },
    "bias_ambig": (_ROWS_AMBIG, _answers("ambig")),
    "bias_disambig": (_ROWS_DISAMBIG, _answers("disambig"), _persons("disambig")),
    "accuracy_aligned": (_ROWS_DISAMBIG, _ALIGNED),
    "accuracy_nonaligned": (_ROWS_DISAMBIG, _NONALIGNED),
    "accuracy_cost": (_ROWS_DISAMBIG, _ALIGNED, _NONALIGNED),
    **{f"share_{who}_ambig": (_ROWS_AMBIG, _answers("ambig")) for who in ("target", "nontarget", "unknown")},
    **{f"share_{who}_disambig": (_ROWS_DISAMBIG, _answers("disambig")) for who in ("target", "nontarget", "unknown")},
    **{f"share_position_{place}": (_PARSED,) for place in range(3)},
}
_BBNLI: dict[str, tuple[_Rule, ...]] = {
    "bias_score": (_HYPOTHESES,),
    "bias_score_mean_subtopics": (_HYPOTHESES,),
    "accuracy_pro": (_TEST_PRO,),
    "accuracy_anti": (_TEST_ANTI,),
    "accuracy_gap": (_TEST_PRO, _TEST_ANTI),
}
_BBQ_NLI: dict[str, tuple[_Rule, ...]] = {
    "bias_score": (_ROWS_AMBIG,),
    "bias_score_ambig": (_ROWS_AMBIG,),
    "bias_score_disambig": (_ROWS_DISAMBIG, _SIDE),
    "table5_style": (_PRO, _ANTI, _SIDE, _BOTH_SIDES),
    "accuracy_ambig": (_ROWS_AMBIG,),
    "accuracy_pro": (_PRO,),
    "accuracy_anti": (_ANTI,),
    "accuracy_gap": (_PRO, _ANTI),
}
RULES = {"bbq": _BBQ, "unqover": {}, "bbnli": _BBNLI, "bbq_nli": _BBQ_NLI}
"""For each benchmark the scores that a run can leave undefined, with rules in the order in which a reader would ask.
Those of UnQover always have rows."""

_CLUSTERS = {"n_templates": "templates", "n_premises": "premises"}


def reasons(benchmark: str, scores: Mapping[str, Any]) -> dict[str, str]:
    """Why scores are undefined.

    Args:
        benchmark: Name of the benchmark.
        scores: What `Benchmark.score` returns, or the same read from `scores.json`.

    Returns:
        For every undefined score, and every interval without ends, its JSON pointer (RFC 6901) within the scores, such
        as "/by/category/Age/bias_disambig", and the reason.
    """
    return dict(_reasons(RULES[benchmark], scores, ""))


def _reasons(rules: Mapping[str, tuple[_Rule, ...]], scores: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    for name, value in scores.items():
        path = f"{at}/{name.replace('~', '~0').replace('/', '~1')}"
        if _is_undefined(value):
            yield path, _reason(rules, scores, name)
        elif name == "ci":
            for score, (low, _) in value.items():
                if _is_undefined(low):
                    yield f"{path}/{score}", _reason_of_interval(rules, scores, score)
        elif isinstance(value, Mapping):
            yield from _reasons(rules, value, path)


def _reason(rules: Mapping[str, tuple[_Rule, ...]], scores: Mapping[str, Any], name: str) -> str:
    for counts, text in rules.get(name, ()):
        if sum(scores[count] for count in counts) == 0:
            return text
    return "a ratio of nothing"


def _reason_of_interval(rules: Mapping[str, tuple[_Rule, ...]], scores: Mapping[str, Any], name: str) -> str:
    if _is_undefined(scores[name]):
        return f"the score is undefined: {_reason(rules, scores, name)}"
    for count, what in _CLUSTERS.items():
        if scores.get(count, 2) < 2:
            return f"the bootstrap needs two {what}, and there is {scores[count]}"
    return "undefined in every replicate of the bootstrap"


def _is_undefined(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
