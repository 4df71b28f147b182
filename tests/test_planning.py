"""A plan says beforehand what a run takes: its tokens are those that the scorers then run."""

import json
import sys
from collections import Counter as Multiset

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from transformers.models.t5.modeling_t5 import T5Stack
from typer.testing import CliRunner

from qabias import cli
from qabias.benchmarks import loadable_benchmarks
from qabias.planning import count as counting
from qabias.planning.count import Counter, ask, count_run, measure_speed
from qabias.planning.plan import PlanArguments, make_plan
from qabias.planning.silent import Work
from qabias.planning.subject import load_subject
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.question import load_examples, make_question
from qabias.scorers import load_scorer
from qabias.scorers.kind import Loading, ScorerKind
from tests.tiny_models import VOCABULARY_SIZE, make_model, make_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")
T5 = {
    **{"vocab_size": VOCABULARY_SIZE, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4},
    **{"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1},
}
BERT = {
    **{"vocab_size": VOCABULARY_SIZE + 16, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"intermediate_size": 48, "pad_token_id": 1, "max_position_embeddings": 512},
}
HEADS = {
    "nli": "BertForSequenceClassification",
    "extractive_qa": "BertForQuestionAnswering",
    "masked_lm": "BertForMaskedLM",
    "multiple_choice": "BertForMultipleChoice",
}
NLI_LABELS = {"id2label": {0: "contradiction", 1: "neutral", 2: "entailment"}}
CHAT = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
BUDGET = Machine("cpu", 700)


def encoder_tokenizer():
    """The tiny tokenizer with the special tokens of an encoder, and subjects of which it has a token."""
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>", "mask_token": "<mask>"}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=make_tokenizer().backend_tokenizer, unk_token="<unk>", **special
    )
    words = ("Christian", "Hindu", "Jewish", "Muslim", "Sikh")
    tokenizer.add_tokens([tokenizers.AddedToken(word, lstrip=True, single_word=True) for word in words])
    return tokenizer


def make_folder(path, kind):
    """Save a tiny model of a kind; returns its folder."""
    torch.manual_seed(0)
    tokenizer = encoder_tokenizer() if kind in HEADS else make_tokenizer()
    if kind in HEADS:
        config = transformers.BertConfig(**BERT, **(NLI_LABELS if kind == "nli" else {}))
        model = getattr(transformers, HEADS[kind])(config)
    elif kind == "seq2seq":
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(**T5))
    else:
        model = make_model("gemma2" if kind == "gemma2" else "llama", max_position_embeddings=1024)
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    if kind == "chat":
        (path / "chat_template.jinja").write_text(CHAT)
    return str(path)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}

    def folder(kind):
        if kind not in made:
            made[kind] = make_folder(tmp_path_factory.mktemp("models") / kind, kind)
        return made[kind]

    return folder


def plan_run(arguments, machine=BUDGET, **options):
    """The count of a run on a CPU."""
    return count_run(Counter(arguments, load_subject(arguments.model, arguments.scorer), machine, True), **options)


@pytest.fixture
def passed(monkeypatch):
    """Tokens that have gone through real models: read, decoded, and those of prompts and answers."""
    seen = Multiset()

    def watch(body):
        forward = body.forward

        def watched(self, input_ids=None, *others, **inputs):
            decodes = isinstance(self, T5Stack) and self.is_decoder
            seen["decoded" if decodes else "read"] += input_ids.numel()
            return forward(self, input_ids, *others, **inputs)

        monkeypatch.setattr(body, "forward", watched)

    def generate(self, **inputs):
        seen["prompts"] += inputs["input_ids"].numel()
        seen["answers"] += len(inputs["input_ids"])
        return original(self, **inputs)

    for body in (transformers.LlamaModel, transformers.Gemma2Model, transformers.BertModel, T5Stack):
        watch(body)
    original = transformers.GenerationMixin.generate
    monkeypatch.setattr(transformers.GenerationMixin, "generate", generate)
    return seen


def really_ask(arguments, passed, machine=BUDGET):
    """Ask a real model all questions, part by part as a run does; the scorer."""
    scorer = load_scorer(
        *(arguments.scorer, arguments.model),
        token_budget=machine.token_budget,
        scorer_options=arguments.options,
        device="cpu",
    )
    passed.clear()  # what it was asked while it was loaded
    question = make_question(load_examples(arguments), arguments, scorer)
    list(ask(question, question.parts, scorer, arguments.norm))
    return scorer


# Tokens


@pytest.mark.parametrize(
    ("benchmark", "config", "prompt_format"),
    [("bbq", "Age", None), ("bbq", "Religion", "letters"), ("unqover", "religion", None), ("bbnli", "all", None)],
)
@pytest.mark.parametrize("layout", ["tree", "flat"])
def test_causal_tokens_are_those_that_a_run_runs(folders, passed, benchmark, config, prompt_format, layout):
    arguments = RunArguments(
        benchmark, folders("causal"), config, format=prompt_format, limit=40, options={"layout": layout}
    )
    scorer = really_ask(arguments, passed)
    count = plan_run(arguments)
    assert count.parts == count.parts_counted
    assert count.work.tokens == passed["read"] == scorer.stats.tokens_run
    assert count.work.tokens_alone == scorer.stats.tokens_flat
    assert count.work.texts == scorer.stats.texts
    if layout == "tree":
        assert count.work.tokens < count.work.tokens_alone


def test_texts_are_those_that_differ(folders):
    arguments = RunArguments("bbq", folders("causal"), "Age", limit=24)
    examples = load_examples(arguments)
    prompt_format = examples.benchmark.formats["qa"]
    rendered = [prompt_format.render(row) for row in examples.table.to_pylist()]
    assert plan_run(arguments).work.texts == len(
        {(prefix, option) for prefix, options in rendered for option in options}
    )


@pytest.mark.parametrize(
    ("kind", "options"), [("chat", {"chat": "yes", "system": "Be brief."}), ("chat", {"chat": "auto"}), ("gemma2", {})]
)
def test_tokens_of_chats_and_of_models_that_cap_their_logits_are_those_of_a_run(folders, passed, kind, options):
    arguments = RunArguments("bbq", folders(kind), "Age", limit=24, options=options)
    really_ask(arguments, passed)
    assert plan_run(arguments).work.tokens == passed["read"] > 0


@pytest.mark.parametrize(
    ("kind", "benchmark", "config"),
    [
        ("nli", "bbnli", "all"),
        ("extractive_qa", "unqover", "religion"),
        ("masked_lm", "unqover", "religion_mlm"),
        ("multiple_choice", "bbq", "Age"),
    ],
)
def test_encoder_tokens_are_those_that_a_run_runs(folders, passed, kind, benchmark, config):
    arguments = RunArguments(benchmark, folders(kind), config, limit=40, scorer=kind)
    scorer = really_ask(arguments, passed)
    work = plan_run(arguments).work
    assert work.tokens == passed["read"] > 0
    assert work.tokens_alone == scorer.stats.tokens_run - scorer.stats.pads_run


def test_text_to_text_tokens_are_those_that_a_run_runs(folders, passed):
    arguments = RunArguments("bbq", folders("seq2seq"), "Age", limit=24)
    really_ask(arguments, passed)
    work = plan_run(arguments).work
    assert work.tokens == passed["read"] > 0
    assert work.written == passed["decoded"] > 0
    assert work.texts == 24 * 3


@pytest.mark.parametrize(
    ("kind", "options"),
    [("causal", {}), ("seq2seq", {}), ("chat", {"chat": "yes"}), ("causal", {"samples": "3", "temperature": "1"})],
)
def test_written_tokens_are_the_prompts_and_the_most_that_may_be_written(folders, passed, kind, options):
    options = {"mode": "generate", "max_new_tokens": "5", **options}
    arguments = RunArguments("bbnli", folders(kind), limit=12, options=options)
    really_ask(arguments, passed)
    work = plan_run(arguments).work
    assert work.tokens == passed["prompts"] >= work.tokens_alone > 0
    assert work.texts == passed["answers"]
    assert work.written == 5 * work.texts


def test_a_gpu_takes_larger_batches_and_a_given_budget_holds_everywhere(folders):
    arguments = RunArguments("bbnli", folders("nli"), limit=400)
    subject = load_subject(arguments.model)
    on_cpu, on_gpu = (Counter(arguments, subject, on_cpu=on_cpu) for on_cpu in (True, False))
    assert count_run(on_gpu).work.tokens_alone == count_run(on_cpu).work.tokens_alone
    assert count_run(on_gpu).work.tokens != count_run(on_cpu).work.tokens
    given = [count_run(Counter(arguments, subject, BUDGET, on_cpu)).work for on_cpu in (True, False)]
    assert given[0] == given[1]


def test_a_size_with_a_tokenizer_has_the_tokens_of_a_model_with_that_tokenizer(folders):
    arguments = RunArguments("bbq", folders("causal"), "Age", limit=24)
    by_size = load_subject("", parameters=70e9, tokenizer=arguments.model)
    counted = count_run(Counter(arguments, by_size, BUDGET)).work
    assert counted == plan_run(arguments).work


def test_a_sample_of_parts_estimates_the_whole_within_its_standard_error(folders, monkeypatch):
    arguments = RunArguments("bbnli", folders("causal"), "religion")
    whole = plan_run(arguments)
    assert whole.parts_counted == whole.parts
    assert whole.error == Work()
    monkeypatch.setattr(counting, "EXACT_TEXTS", 0)
    monkeypatch.setattr(counting, "SAMPLED_TEXTS", whole.examples * 3 // 2)
    sample = plan_run(arguments)
    assert 3 <= sample.parts_counted < sample.parts == whole.parts
    assert 0 < abs(sample.work.tokens - whole.work.tokens) < 4 * sample.error.tokens
    assert plan_run(arguments, exact=True) == whole


def test_the_standard_error_of_a_sample_is_that_of_the_textbook(monkeypatch, folders):
    arguments = RunArguments("bbnli", folders("causal"), "gender", limit=400)
    counter = Counter(arguments, load_subject(arguments.model), BUDGET, True)
    tokens = np.array([work.tokens for work in counter.count(counter.question.parts)])
    monkeypatch.setattr(counting, "EXACT_TEXTS", 0)
    monkeypatch.setattr(counting, "SAMPLED_TEXTS", 1)  # two parts at least
    count = count_run(counter)
    n = len(tokens)
    assert count.parts_counted == 2 < n
    candidates = [
        n * np.std(tokens[[i, j]], ddof=1) / np.sqrt(2) * np.sqrt(1 - 2 / n)
        for i in range(n)
        for j in range(i + 1, n)
        if n / 2 * (tokens[i] + tokens[j]) == pytest.approx(count.work.tokens)
    ]
    assert any(count.error.tokens == pytest.approx(expected) for expected in candidates)


# Models


@pytest.mark.parametrize("kind", ["causal", "seq2seq", "nli", "masked_lm"])
def test_parameters_are_those_of_the_real_model_and_need_no_weights(folders, kind, tmp_path):
    subject = load_subject(folders(kind))
    model = getattr(transformers, type(subject.model).__name__).from_pretrained(folders(kind))
    assert subject.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert {parameter.device.type for parameter in subject.model.parameters()} == {"meta"}
    model.config.save_pretrained(tmp_path)
    make_tokenizer().save_pretrained(tmp_path)
    assert load_subject(str(tmp_path)).parameters == subject.parameters


# The command


def invoke(*arguments):
    return CliRunner().invoke(cli.app, ["plan", *map(str, arguments)])


def written_plan(path, *arguments):
    result = invoke(*arguments, "--output", path)
    assert result.exit_code == 0, result.output
    return json.loads(path.read_text()), result.output


def test_the_command_prints_a_plan_and_writes_it(folders, tmp_path):
    plan, output = written_plan(
        *(tmp_path / "plan.json", "bbq", "--model", folders("causal"), "--config", "Age", "--limit", 20),
        *("--price-per-hour", 2),
    )
    assert "exact" in output
    (run,) = plan["runs"]
    assert f"{run['count']['work']['tokens']:,.0f}" in output
    assert run["count"]["parts"] == run["count"]["parts_counted"]
    assert run["weights_bytes"] == 2 * load_subject(folders("causal")).parameters
    assert run["tokens_per_second"] is run["seconds"] is run["cost"] is None
    assert "give --tokens-per-second or --measure" in output


@pytest.mark.parametrize(
    ("given", "bytes_each"),
    [
        (("--tokens-per-second", 50), 2),
        (("--tokens-per-second", 50, "--device", "cpu"), 4),
        (("--measure", "--device", "cpu"), 4),
    ],
)
def test_at_a_known_speed_time_and_cost_follow_from_the_tokens(folders, tmp_path, monkeypatch, given, bytes_each):
    monkeypatch.setattr("qabias.planning.plan.measure_speed", lambda *_: 50.0)
    plan, output = written_plan(
        *(tmp_path / "plan.json", "bbq", "--model", folders("causal"), "--config", "Age", "--limit", 24),
        *(*given, "--price-per-hour", 1e3),
    )
    (run,) = plan["runs"]
    assert run["tokens_per_second"] == 50
    assert run["seconds"] == pytest.approx(run["count"]["work"]["tokens"] / 50)
    assert run["cost"] == pytest.approx(run["seconds"] / 3600 * 1e3)
    assert run["weights_bytes"] == bytes_each * load_subject(folders("causal")).parameters
    assert f"{run['cost']:,.2f}" in output
    assert "give --tokens-per-second" not in output


def test_decoded_tokens_take_time_too(folders, tmp_path):
    plan, _ = written_plan(
        *(tmp_path / "plan.json", "bbq", "--model", folders("seq2seq"), "--config", "Age", "--limit", 24),
        *("--tokens-per-second", 50),
    )
    (run,) = plan["runs"]
    work = run["count"]["work"]
    assert run["seconds"] == pytest.approx((work["tokens"] + work["written"]) / 50)
    assert run["cost"] is None


def test_measuring_gives_a_speed(folders):
    arguments = RunArguments("bbnli", folders("causal"), limit=64)
    counter = Counter(arguments, load_subject(arguments.model), BUDGET, True)
    assert measure_speed(arguments, counter, BUDGET, seconds=0.1) > 0


def test_a_large_model_is_planned_by_its_size_for_all_benchmarks(folders, tmp_path):
    plan, output = written_plan(
        *(tmp_path / "plan.json", "all", "--parameters", 70e9, "--tokenizer", folders("causal")),
        *("--tokens-per-second", 4, "--price-per-hour", 1e3, "--limit", 24, "--source", "bundled"),
    )
    runs = plan["runs"]
    # The others have texts of their authors alone, which not every machine has.
    bundled = [name for name, benchmark in loadable_benchmarks().items() if "bundled" in benchmark.sources]
    assert [run["name"] for run in runs] == bundled
    (sums,) = [line for line in output.splitlines() if line.strip().startswith("all ")]
    tokens, hours, cost = (
        sum(run["count"]["work"]["tokens"] for run in runs),
        sum(run["seconds"] for run in runs) / 3600,
        sum(run["cost"] for run in runs),
    )
    for shown in (f"{tokens:,.0f}", f"{hours:,.3f}", f"{cost:,.2f}", "140.00 GB"):
        assert shown in sums


def test_a_sampled_count_is_shown_with_its_standard_error(folders, tmp_path, monkeypatch):
    monkeypatch.setattr(counting, "EXACT_TEXTS", 0)
    monkeypatch.setattr(counting, "SAMPLED_TEXTS", 1)
    plan, output = written_plan(tmp_path / "plan.json", "bbnli", "--model", folders("causal"), "--config", "gender")
    count = plan["runs"][0]["count"]
    assert f"2 of {count['parts']}" in " ".join(output.split())
    assert f"±{count['error']['tokens']:,.0f}" in output


def test_models_of_a_suite_that_cannot_be_had_are_named_and_the_others_planned(folders):
    models = f"roberta-base-race,{folders('causal')}"
    result = invoke("paper:bbq", "--models", models, "--source", "bundled", "--limit", 24)
    assert result.exit_code == 2
    assert "causal-qa" in result.output
    assert "roberta-base-race-pair: not planned: there is no folder models/roberta-base-race" in result.output


# Refusals


def refusal(arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["qabias", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "qabias: error:" in line]
    return line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bqb",), "did you mean 'bbq'"),
        (("paper:bqb",), "did you mean 'paper:bbq'"),
        (("paper:bbq", "--model", "CAUSAL"), "by --models"),
        (("bbq", "--model", "baseline:random"), "runs no model"),
        (("bbq", "--model", "CAUSAL", "--scorer", "server"), "the scorer server runs no model on this machine"),
        (("bbq", "--model", "CAUSAL", "--scorer", "seq2seq"), "choose the scorer made for it"),
        (("bbq", "--parameters", "70e9"), "--tokenizer"),
        (("bbq", "--parameters", "-1", "--tokenizer", "CAUSAL"), "parameters is -1"),
        (("bbq", "--parameters", "1e9", "--tokenizer", "CAUSAL", "--scorer", "nli"), "give --model for nli"),
        (("bbq", "--model", "no/such"), "cannot be loaded"),
        (("bbq", "--model", "CAUSAL", "--models", "CAUSAL"), "use --model"),
        (("all", "--model", "CAUSAL", "--config", "Age"), "plan one benchmark by its name"),
        (("bbq", "--model", "CAUSAL", "--tokens-per-second", "-1"), "it must be above 0"),
        (("bbq", "--model", "CAUSAL", "--measure", "--tokens-per-second", "4"), "leave --tokens-per-second out"),
    ],
)
def test_mistakes_are_one_line(arguments, message, folders, monkeypatch, capsys):
    given = [folders("causal") if argument == "CAUSAL" else argument for argument in arguments]
    assert message in refusal(["plan", *given], monkeypatch, capsys)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("causal", ("bbq", "--config", "Agee")),
        ("causal", ("bbq", "--format", "racee")),
        ("causal", ("bbq", "--dtype", "int3", "--limit", "4")),
        ("causal", ("bbq", "--limit", "0")),
        ("causal", ("bbq", "--token-budget", "0")),
        ("causal", ("bbq", "--option", "span=exact")),
        ("causal", ("bbq", "--option", "layout=bush")),
        ("causal", ("bbq", "--option", "chat=yes")),
        ("causal", ("bbq", "--option", "system=Hi")),
        ("causal", ("bbq", "--option", "samples=2")),
        ("causal", ("bbq", "--option", "mode=generate", "--option", "samples=2")),
        ("causal", ("unqover", "--format", "choose_cot", "--config", "religion", "--limit", "4")),
        ("masked_lm", ("bbq", "--scorer", "causal")),
        ("masked_lm", ("unqover", "--option", "topk=0", "--config", "religion_mlm")),
        ("masked_lm", ("unqover", "--option", "topk=1000000", "--config", "religion_mlm")),
        ("masked_lm", ("unqover", "--config", "religion", "--limit", "4")),
        ("extractive_qa", ("unqover", "--option", "span=exakt", "--config", "religion")),
        ("nli", ("bbnli", "--option", "labels=yes,no", "--limit", "4")),
        ("nli", ("unqover", "--config", "religion")),
    ],
)
def test_a_plan_refuses_what_a_run_refuses_in_the_same_words(kind, arguments, folders, monkeypatch, capsys, tmp_path):
    given = [*arguments, "--model", folders(kind)]
    of_run = refusal(["run", *given, "--output", str(tmp_path / "run")], monkeypatch, capsys)
    assert refusal(["plan", *given], monkeypatch, capsys) == of_run


class Deaf:
    """Somebody's scorer that does not ask the model that it loads."""

    name = "causal"
    model_signature = ""

    def score(self, requests):
        answer = load_scorer(None, "baseline:random").score
        return answer(requests)


def test_a_scorer_that_asks_no_model_is_one_clear_error(folders, monkeypatch, capsys):
    kind = ScorerKind("causal", "", ("options",), load=load_deaf, auto_class="AutoModelForCausalLM")
    monkeypatch.setattr("qabias.planning.subject.load_kind", lambda _: kind)
    arguments = ["plan", "bbq", "--model", folders("causal"), "--scorer", "causal", "--limit", "5"]
    load_subject.cache_clear()
    assert "nothing to count" in refusal(arguments, monkeypatch, capsys)
    load_subject.cache_clear()


def load_deaf(_loading: Loading):
    return Deaf()


def test_a_plan_takes_the_word_and_the_orders_of_a_run(folders):
    def planned(ask, **arguments):
        run = RunArguments("bbq", folders("causal"), "Age", limit=24, **arguments)
        ((found,), failures) = make_plan(PlanArguments("bbq", run, ask=ask))
        assert not failures
        return found

    word = planned("letter", orders=3)
    single = planned(None, format="letters", options={"chat": "auto"}, orders=3)
    assert (word.arguments, word.count) == (single.arguments, single.count)
    assert word.count.work.texts == 3 * planned("letter").count.work.texts
