"""A plan says beforehand what a run takes: its tokens are those that the scorers then run."""

import argparse
import json
import statistics
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from typer.testing import CliRunner

from speed import peers
from qabias import cli
from qabias.benchmarks import load_benchmark
from qabias.errors import QabiasError
from qabias.measuring import run as runs
from qabias.measuring.run import Machine, RunArguments, cut_parts, load_examples
from qabias.planning import count as counting
from qabias.planning.cost import Hardware, all_hardware, count_flops, estimate_memory, load_hardware
from qabias.planning.count import ask, count_run
from qabias.planning.counters import Work
from qabias.planning.measure import Speed, measure
from qabias.planning.outline import Shape, Subject, count_parameters, load_subject
from qabias.planning.plan import Planned, as_dict, fits, make_planned, target_runs, total_cost
from qabias.scorers import load_scorer
from tests.tiny_models import VOCABULARY_SIZE, make_model, make_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")
T5 = {
    "vocab_size": VOCABULARY_SIZE,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
    "pad_token_id": 0,
    "eos_token_id": 1,
}
BERT = {
    "vocab_size": VOCABULARY_SIZE + 16,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "pad_token_id": 1,
    "max_position_embeddings": 512,
}
NLI_LABELS = {0: "contradiction", 1: "neutral", 2: "entailment"}


def encoder_tokenizer():
    """The tiny tokenizer with the special tokens of an encoder."""
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=make_tokenizer().backend_tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="</s>",
        mask_token="<mask>",
        unk_token="<unk>",
    )
    # Subjects of which a masked model has a token.
    words = ("Christian", "Hindu", "Jewish", "Muslim", "Sikh")
    tokenizer.add_tokens([tokenizers.AddedToken(word, lstrip=True, single_word=True) for word in words])
    return tokenizer


def make_folder(path, kind):
    """Save a tiny model of a kind; returns its folder."""
    torch.manual_seed(0)
    tokenizer = make_tokenizer() if kind in ("causal", "seq2seq") else encoder_tokenizer()
    if kind == "causal":
        model = make_model("llama", max_position_embeddings=1024)
    elif kind == "seq2seq":
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(**T5))
    else:
        name = {
            "nli": "BertForSequenceClassification",
            "extractive_qa": "BertForQuestionAnswering",
            "masked_lm": "BertForMaskedLM",
            "multiple_choice": "BertForMultipleChoice",
        }[kind]
        labels = {"id2label": NLI_LABELS} if kind == "nli" else {}
        model = getattr(transformers, name)(transformers.BertConfig(**BERT, **labels))
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return str(path)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}

    def folder(kind):
        if kind not in made:
            made[kind] = make_folder(tmp_path_factory.mktemp("models") / kind, kind)
        return made[kind]

    return folder


def really_ask(arguments, token_budget=None):
    """Ask a real model part by part as a run does; the scorer with its counts."""
    benchmark = load_benchmark(arguments.benchmark)
    scorer = load_scorer(
        arguments.scorer, arguments.model, token_budget=token_budget, scorer_options=arguments.options, device="cpu"
    )
    passes = SimpleNamespace(first=0, second=0, batches=0)
    watch(getattr(scorer, "_loaded", None), passes)
    table = load_examples(benchmark, arguments)
    for part in cut_parts(benchmark, table, benchmark.units_per_part(scorer.name)):
        ask(benchmark, part, scorer, arguments)
    return scorer, passes


def watch(loaded, passes):
    """Count what passes through the two sides of a text-to-text model."""
    if loaded is None or not loaded.model.config.is_encoder_decoder:
        return

    def count(side):
        def hook(_module, _args, kwargs):
            setattr(passes, side, getattr(passes, side) + kwargs["input_ids"].numel())

        return hook

    loaded.model.get_encoder().register_forward_pre_hook(count("first"), with_kwargs=True)
    loaded.model.get_decoder().register_forward_pre_hook(count("second"), with_kwargs=True)


@pytest.mark.parametrize(
    ("benchmark", "config", "prompt_format"),
    [("bbq", "Age", None), ("bbq", "Religion", "letters"), ("unqover", "religion", None), ("bbnli", "all", None)],
)
@pytest.mark.parametrize("layout", ["tree", "flat"])
def test_causal_tokens_are_those_that_a_real_run_runs(folders, benchmark, config, prompt_format, layout):
    arguments = RunArguments(
        benchmark, folders("causal"), config, format=prompt_format, limit=40, options={"layout": layout}
    )
    scorer, _ = really_ask(arguments, token_budget=700)
    count = count_run(arguments, load_subject(arguments.model), on_cpu=True, token_budget=700)
    assert count.is_exact
    assert count.work.tokens == scorer.stats.tokens_run
    assert count.work.tokens_flat == scorer.stats.tokens_flat
    assert count.work.batches == scorer.stats.batches
    if layout == "tree":
        assert count.work.tokens < count.work.tokens_flat


@pytest.mark.parametrize(
    ("kind", "benchmark", "config"),
    [
        ("nli", "bbnli", "all"),
        ("extractive_qa", "unqover", "religion"),
        ("masked_lm", "unqover", "religion_mlm"),
        ("multiple_choice", "bbq", "Age"),
    ],
)
def test_encoder_tokens_are_those_that_a_real_run_runs(folders, kind, benchmark, config):
    arguments = RunArguments(benchmark, folders(kind), config, limit=40, scorer=kind)
    scorer, _ = really_ask(arguments, token_budget=900)
    count = count_run(arguments, load_subject(arguments.model), on_cpu=True, token_budget=900)
    assert count.work.tokens == scorer.stats.tokens_run > 0
    assert count.work.tokens_flat == scorer.stats.tokens_run - scorer.stats.pads_run
    assert count.work.batches == scorer.stats.batches


def test_text_to_text_tokens_are_those_that_a_real_run_runs(folders):
    arguments = RunArguments("bbq", folders("seq2seq"), "Age", limit=24)
    _, passes = really_ask(arguments, token_budget=900)
    count = count_run(arguments, load_subject(arguments.model), on_cpu=True, token_budget=900)
    assert count.work.tokens == passes.first > 0
    assert count.work.decoder_tokens == passes.second > 0
    assert count.work.requests == 24 * 3


def test_written_tokens_are_the_prompts_and_the_most_that_may_be_written(folders):
    options = {"mode": "generate", "max_new_tokens": "5"}
    arguments = RunArguments("bbnli", folders("causal"), limit=12, options=options)
    count = count_run(arguments, load_subject(arguments.model), on_cpu=True)
    assert count.work.decoder_tokens == 5 * count.work.requests
    assert count.work.tokens >= count.work.tokens_flat > 0


def test_a_sample_of_parts_estimates_the_whole_within_its_standard_error(folders, monkeypatch):
    arguments = RunArguments("bbnli", folders("causal"), "religion")
    subject = load_subject(arguments.model)
    whole = count_run(arguments, subject, on_cpu=True)
    assert whole.is_exact
    assert whole.error.tokens == 0
    monkeypatch.setattr(counting, "EXACT_TEXTS", 0)
    monkeypatch.setattr(counting, "SAMPLED_TEXTS", whole.n_examples * 3 // 2)
    part = count_run(arguments, subject, on_cpu=True)
    assert 3 <= part.n_counted < part.n_parts == whole.n_parts
    assert part.error.tokens > 0
    assert abs(part.work.tokens - whole.work.tokens) < 4 * part.error.tokens
    assert count_run(arguments, subject, on_cpu=True, exact=True).work == whole.work


def test_the_standard_error_of_a_sample_is_that_of_the_textbook(monkeypatch, folders):
    arguments = RunArguments("bbnli", folders("causal"), "gender", limit=400)
    subject = load_subject(arguments.model)
    monkeypatch.setattr(counting, "_draw", lambda *_: [0, 2])
    count = count_run(arguments, subject, on_cpu=True)
    monkeypatch.setattr(counting, "_draw", lambda *_: [0, 0])
    first = count_run(arguments, subject, on_cpu=True).work.tokens / count.n_parts
    second = 2 * count.work.tokens / count.n_parts - first
    expected = count.n_parts * np.std([first, second], ddof=1) / np.sqrt(2) * np.sqrt(1 - 2 / count.n_parts)
    assert count.error.tokens == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["causal", "seq2seq", "nli", "masked_lm"])
def test_parameters_are_those_of_the_real_model_and_need_no_weights(folders, kind, tmp_path):
    real = load_subject(folders(kind))
    model = getattr(transformers, type(real.model).__name__).from_pretrained(folders(kind))
    assert real.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert {parameter.device.type for parameter in real.model.parameters()} == {"meta"}
    if kind == "seq2seq":
        assert real.encoder_parameters == count_parameters(model.get_encoder())
    model.config.save_pretrained(tmp_path)
    make_tokenizer().save_pretrained(tmp_path)
    assert load_subject(str(tmp_path)).parameters == real.parameters


def test_operations_of_a_small_model_by_hand():
    # 10 tokens in rows of 5: 2 rows of 25 pairs; 2 * 1000 * 10 and 4 * 3 layers * width 8 * 50.
    shape = Shape(layers=3, attention_width=8, cache_width=16, hidden_size=8, vocabulary_size=100)
    work = Work()
    work.add(2, 5)
    assert work == Work(tokens=10, attention=50, batches=1)
    assert count_flops(Subject("m", "causal", None, 1000, shape=shape), work) == 20_000 + 4_800
    assert count_flops(Subject("m", "causal", None, 1000), work) == 20_000
    sides = Subject("m", "seq2seq", None, 1000, encoder_parameters=400)
    assert count_flops(sides, Work(tokens=10, decoder_tokens=3)) == 2 * (400 * 10 + 600 * 3)


def test_memory_is_the_weights_and_what_a_batch_adds():
    shape = Shape(layers=3, attention_width=8, cache_width=16, hidden_size=8, vocabulary_size=100)
    subject = Subject("m", "causal", None, 1000, shape=shape)
    assert estimate_memory(subject, "float32", 10).weights == 4000
    plain = estimate_memory(subject, "bfloat16", 10)
    assert plain.weights == 2000
    assert estimate_memory(subject, "bfloat16", 10, generates=True).total - plain.total == 10 * 3 * 16 * 2
    assert estimate_memory(Subject("m", "causal", None, 1000), "bfloat16", 10).working is None


def test_time_and_fit_follow_from_the_machine():
    machine = Hardware("two", 2, 100.0, 1500.0, 0.5, "made up")
    count = SimpleNamespace(work=Work(tokens=10, tokens_flat=40), error=Work())
    assert Planned("run", count, 1000.0).seconds(machine) == 10.0
    assert Planned("run", count, 1000.0).seconds_alone(machine) == 40.0
    assert Planned("run", count, 1000.0, tokens_per_second=5.0).seconds(None) == 2.0
    subject = Subject("m", "causal", None, 1000)
    assert fits(estimate_memory(subject, "float32", 1), machine) == "no: 3 devices' worth"
    assert fits(estimate_memory(Subject("m", "causal", None, 500), "bfloat16", 1), machine) == "yes"
    assert fits(estimate_memory(subject, "bfloat16", 1), machine).startswith("only spread over 2 devices")


def test_every_machine_states_figures_that_make_sense():
    assert {"A100-80GB", "H100-80GB", "8xH100", "L4", "T4", "cpu"} == set(all_hardware())
    for machine in all_hardware().values():
        assert 0 < machine.share_of_peak <= 1
        assert "assumed" in machine.source
        assert machine.flops == machine.devices * machine.peak_flops * machine.share_of_peak


def test_a_target_is_a_benchmark_all_benchmarks_or_a_suite(folders):
    base = RunArguments("", folders("causal"))
    names = [meant.name for meant in target_runs("all", base, config=None, source=None, models=())]
    assert names == ["bbq", "unqover", "bbnli", "bbq_nli"]
    ((name, arguments, missing),) = target_runs(
        "paper:unqover", base, config=None, source="bundled", models=["roberta-base-newsqa"]
    )
    assert name == "roberta-base-newsqa-qa"
    assert "runners/finetune_qa.py" in missing
    assert arguments.options == {"span": "released", "header": "newsqa"}


def invoke(*arguments):
    return CliRunner().invoke(cli.app, ["plan", *map(str, arguments)])


def test_the_command_prints_a_plan_and_writes_it(folders, tmp_path):
    path = tmp_path / "plan.json"
    result = invoke(
        *("bbq", "--model", folders("causal"), "--config", "Age", "--limit", 20, "--hardware", "L4"),
        *("--price-per-hour", 2, "--output", path),
    )
    assert result.exit_code == 0, result.output
    assert "exact" in result.output
    assert "L4" in result.output
    written = json.loads(path.read_text())
    (run,) = written["runs"]
    assert run["exact"] is True
    assert run["parameters"] == load_subject(folders("causal")).parameters
    row = written["hardware"]["L4"]
    assert row["fits"] == "yes"
    assert row["seconds"] == pytest.approx(run["flops"] / (121e12 * 0.4))
    assert row["seconds_alone"] > row["seconds"]
    assert row["cost"] == pytest.approx(row["seconds"] / 3600 * 2)
    assert row["cost_alone"] == pytest.approx(row["seconds_alone"] / 3600 * 2)


def test_a_model_that_only_a_server_can_hold_costs_the_time_of_every_text_by_itself(folders, tmp_path):
    path = tmp_path / "plan.json"
    result = invoke(
        *("bbq", "--parameters", 70e9, "--tokenizer", folders("causal"), "--hardware", "8xH100", "--hardware", "L4"),
        *("--config", "Age", "--limit", 24, "--price-per-hour", 1e6, "--output", path),
    )
    assert result.exit_code == 0, result.output
    rows = json.loads(path.read_text())["hardware"]
    assert rows["8xH100"]["fits"].startswith("only spread over 8 devices")
    assert rows["L4"]["fits"].startswith("no")
    for row in rows.values():
        assert row["seconds_alone"] > 1.5 * row["seconds"]
        assert row["cost"] == row["cost_alone"] == pytest.approx(row["seconds_alone"] / 3600 * 1e6)
        assert f"{row['cost']:,.2f}" in result.output


def test_only_runs_that_do_not_fit_cost_the_time_of_every_text_by_itself():
    machine = Hardware("one", 1, 100.0, 1500.0, 0.5, "made up")

    def plan_run(n_parameters):
        subject = Subject("m", "causal", None, n_parameters)
        work = Work(tokens=10, tokens_flat=40, batches=1)
        arguments = SimpleNamespace(options={})
        count = SimpleNamespace(subject=subject, work=work, error=Work(), arguments=arguments, on_cpu=False)
        return Planned("run", count, 50.0 * 3600)

    small, large = plan_run(500), plan_run(1000)
    assert total_cost([small], machine, "float16", 2.0) == 2 * 1.0
    assert total_cost([large], machine, "float16", 2.0) == 2 * 4.0
    assert total_cost([small, large], machine, "float16", 2.0) == 2 * (1.0 + 4.0)
    assert total_cost([small], machine, "float32", 2.0) == 2 * 4.0
    assert total_cost([small], machine, "float16", None) is None


@pytest.mark.parametrize(
    ("given", "dtype", "bytes_each"),
    [(("--tokens-per-second", 50), "bfloat16", 2), (("--measure", "--device", "cpu"), "float32", 4)],
)
def test_at_a_known_speed_time_cost_and_memory_of_every_run_are_written(
    folders, tmp_path, monkeypatch, given, dtype, bytes_each
):
    monkeypatch.setattr("qabias.planning.measure.measure", lambda *_: Speed(50.0, 100.0, 2.0, "cpu"))
    path = tmp_path / "plan.json"
    result = invoke(
        *("bbq", "--model", folders("causal"), "--config", "Age", "--limit", 24, *given),
        *("--price-per-hour", 2, "--output", path),
    )
    assert result.exit_code == 0, result.output
    written = json.loads(path.read_text())
    assert written["hardware"] == {}
    (run,) = written["runs"]
    assert run["seconds"] == pytest.approx(run["work"]["tokens"] / 50)
    assert run["seconds_alone"] == pytest.approx(run["work"]["tokens_flat"] / 50)
    assert run["cost"] == pytest.approx(run["seconds"] / 3600 * 2)
    assert run["cost_alone"] == pytest.approx(run["seconds_alone"] / 3600 * 2)
    assert run["dtype"] == dtype
    assert run["weights_bytes"] == bytes_each * run["parameters"]
    assert run["working_bytes_estimate"] > 0


def test_a_plan_without_a_price_or_a_speed_of_its_own_leaves_them_out(folders):
    arguments = RunArguments("bbq", folders("causal"), "Age", limit=8)
    planned = [make_planned("bbq", count_run(arguments, load_subject(arguments.model)), None)]
    written = as_dict(planned, [load_hardware("L4")], "auto", None)
    assert "seconds" not in written["runs"][0]
    assert written["hardware"]["L4"]["cost"] is written["hardware"]["L4"]["cost_alone"] is None


def test_a_large_model_is_planned_by_its_size_for_all_benchmarks(folders):
    result = invoke(
        *("all", "--parameters", 70e9, "--tokenizer", folders("causal"), "--hardware", "8xH100", "--limit", 24)
    )
    assert result.exit_code == 0, result.output
    for shown in ("bbq", "unqover", "bbnli", "140 GB", "spread over 8 devices"):
        assert shown in result.output


def test_models_of_a_suite_that_cannot_be_had_are_told_and_the_others_planned(folders):
    models = f"roberta-base-race,{folders('causal')}"
    result = invoke("paper:bbq", "--models", models, "--source", "bundled", "--limit", 24, "--hardware", "L4")
    assert result.exit_code == 2
    assert "causal-qa" in result.output
    assert "roberta-base-race-pair: not planned: there is no folder models/roberta-base-race" in result.output


def test_measuring_gives_a_speed(folders):
    arguments = RunArguments("bbnli", folders("causal"), limit=64)
    speed = measure(arguments, load_subject(arguments.model), Machine(device="cpu"), seconds=0.2)
    assert speed.seconds >= 0.2
    assert speed.tokens_per_second == pytest.approx(speed.tokens / speed.seconds)
    assert speed.tokens > 0


def time_answers(monkeypatch, benchmark):
    """The list to which every part that a benchmark asks adds its seconds."""
    seconds = []
    answer = benchmark.answer

    def timed(_, *arguments):
        started = time.perf_counter()
        answers = answer(*arguments)
        seconds.append(time.perf_counter() - started)
        return answers

    monkeypatch.setattr(type(benchmark), "answer", timed)
    return seconds


@pytest.mark.slow
def test_the_measured_time_of_smollm2_is_right_within_a_fifth(tmp_path, monkeypatch):
    pytest.importorskip("gguf")
    arguments = RunArguments("bbnli", "smollm2", "religion", limit=130)
    machine = Machine(device="cpu")
    subject = load_subject(arguments.model)
    count = count_run(arguments, subject, exact=True, on_cpu=True)
    scorer = load_scorer(None, arguments.model, device=machine.device)
    for module in ("qabias.measuring.run", "qabias.planning.measure"):  # loading takes longer than asking so little
        monkeypatch.setattr(f"{module}.load_scorer", lambda *_, **__: scorer)
    ratios = []
    for turn in range(3):
        speed = measure(arguments, subject, machine, seconds=2.5)
        tokens_before = scorer.stats.tokens_run
        with pytest.MonkeyPatch.context() as patch:
            seconds = time_answers(patch, load_benchmark(arguments.benchmark))
            runs.run(arguments, tmp_path / str(turn), machine)
        assert scorer.stats.tokens_run - tokens_before == count.work.tokens
        assert len(seconds) == count.n_parts >= 2
        ratios.append(make_planned("run", count, speed.tokens_per_second).seconds(None) / sum(seconds))
    # A neighbour on the machine may disturb one of three.
    assert statistics.median(ratios) == pytest.approx(1, abs=0.2), ratios


@pytest.mark.parametrize("least_size", [peers.PROBABILITY, peers.LOGLIKELIHOOD])
def test_peers_agree_only_if_figures_agree_by_their_own_size(least_size):
    theirs = np.array([1e-9, 3e-5, 0.7]) if least_size == peers.PROBABILITY else np.array([-1e-9, -3.0, -70.0])
    for place in range(3):
        step = np.zeros(3)
        step[place] = max(abs(theirs[place]), least_size)
        assert peers.relative_difference(theirs + 2e-3 * step, theirs, least_size) == pytest.approx(2e-3)
        assert peers.relative_difference(theirs + 1e-4 * step, theirs, least_size) == pytest.approx(1e-4)
    assert peers.TOLERANCE <= 1e-4
    assert peers.relative_difference(theirs, np.full(3, np.nan), least_size) == np.inf
    assert peers.relative_difference(theirs[:2], theirs, least_size) == np.inf


@pytest.mark.parametrize("scorer", ["seq2seq", "multiple_choice", "masked_lm"])
def test_a_padded_loop_in_batches_is_among_the_peers_and_gives_the_same_figures(scorer):
    comparison = peers.COMPARISONS[scorer](argparse.Namespace(quick=True, questions=12))
    ours = comparison.ours()
    assert f"transformers, batches of {peers.BATCH}" in comparison.peers
    for ask_peer in comparison.peers.values():
        assert peers.relative_difference(ours, ask_peer(), comparison.least_size) < peers.TOLERANCE
    assert peers.relative_difference(ours, ours * 1.01, comparison.least_size) > peers.TOLERANCE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bqb",), "did you mean 'bbq'"),
        (("bbq", "--hardware", "H200"), "unknown hardware 'H200'"),
        (("bbq", "--hardware", "H100"), "did you mean"),
        (("paper:bqb",), "did you mean 'paper:bbq'"),
        (("bbq", "--model", "baseline:random"), "runs no model"),
        (("bbq", "--parameters", "70e9"), "--tokenizer"),
        (("bbq", "--parameters", "0", "--tokenizer", "TINY"), "parameters is 0"),
        (("bbq", "--parameters", "1e9", "--tokenizer", "TINY", "--scorer", "nli"), "give --model for nli"),
        (("bbq", "--model", "no/such"), "cannot be loaded"),
        (("bbq", "--model", "TINY", "--scorer", "server"), "a plan knows the scorers"),
        (("bbq", "--model", "TINY", "--config", "Agee"), "did you mean 'Age'"),
        (("bbq", "--model", "TINY", "--format", "racee"), "did you mean 'race'"),
        (("bbq", "--model", "TINY", "--option", "span=exact"), "no option 'span'"),
        (("bbq", "--model", "TINY", "--dtype", "int3", "--limit", "4"), "unknown dtype"),
        (("bbq", "--model", "TINY", "--limit", "0"), "limit is 0"),
        (("bbq", "--model", "TINY", "--models", "TINY"), "use --model"),
        (("all", "--model", "TINY", "--config", "Age"), "plan one benchmark by its name"),
        (("bbq", "--model", "TINY", "--tokens-per-second", "-1"), "it must be above 0"),
        (("bbq", "--model", "TINY", "--measure", "--hardware", "L4"), "leave --hardware"),
        (("bbq", "--hardware", "cpu", "--hardware", "L4"), "plan for it by itself"),
        (("unqover", "--model", "TINY", "--scorer", "nli"), "cannot be"),
    ],
)
def test_mistakes_are_one_line(arguments, message, folders, monkeypatch, capsys):
    given = [folders("causal") if argument == "TINY" else argument for argument in arguments]
    monkeypatch.setattr(sys, "argv", ["qabias", "plan", *given])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "qabias: error:" in line]
    assert message in line


def test_hardware_names_are_suggested():
    with pytest.raises(QabiasError, match="did you mean 'A100-80GB'"):
        load_hardware("A100")
