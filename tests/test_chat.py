"""A chat model reads the turns of its own template and nothing else, and an option is the beginning of its answer."""

import copy
import warnings

import numpy as np
import pytest
import torch

from qabias.errors import QabiasError
from qabias.models.loading import CAUSAL, load_model
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.scorers.base import Request, TextScorer
from qabias.scorers.causal import CausalScorer
from qabias.scorers.chat import ChatTemplate
from qabias.scorers.generation import GenerationScorer
from qabias.scorers.registry import load_scorer
from tests import tiny_models
from tests.test_generation_scorer import generated_one_at_a_time
from tests.tiny_models import assert_equal_scores, first_of

pytestmark = pytest.mark.usefixtures("one_thread")

# Writes the start token itself and ends the assistant's header with a newline, as Llama's does.
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ '[' + message['role'] + ']\n' + message['content'] | trim }}"
    "{{ eos_token }}{% endfor %}{% if add_generation_prompt %}{{ '[assistant]\n\n' }}{% endif %}"
)
# Leaves the start token to nobody, ends the header without a newline, and has a system message of its own.
BARE = (
    "{% if messages[0]['role'] != 'system' %}{{ 'Be kind. ' }}{% endif %}"
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + ' ' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}"
)
NO_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}" + TEMPLATE
DROPS_SYSTEM = TEMPLATE.replace("{% for message in messages %}", "{% for message in messages[-1:] %}")
DATED = "{{ strftime_now('%d %b %Y') }}" + TEMPLATE

REQUESTS = [
    Request(
        "A baker shared a table.\n\nQ: Who was generous?\nA:", (" The baker", " It can't be determined"), key="a/0"
    ),
    Request("The carpenter had forgotten an umbrella.\nAnswer:", (" A", " B", " C"), key="a/1"),
    Request("Two neighbours talked about the weather.", ("\nThe nurse", "\n The train", "A nurse"), key="a/2"),
]
PROMPTS = [request.prefix for request in REQUESTS]
KEYS = [request.key for request in REQUESTS]


def chat_model(template=TEMPLATE, kind="llama", adds_bos=False):
    """A tiny model whose tokenizer has a chat template."""
    loaded = tiny_models.load(tiny_models.make_model(kind), adds_bos=adds_bos)
    object.__setattr__(loaded, "tokenizer", copy.deepcopy(loaded.tokenizer))
    loaded.tokenizer.chat_template = template
    return loaded


def turns(tokenizer, prompt, system=None):
    """Tokens up to the end of the assistant's header as the library writes them."""
    messages = [{"role": "user", "content": prompt}]
    if system is not None:
        messages.insert(0, {"role": "system", "content": system})
    return tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=False)


def one_at_a_time(loaded, requests, system=None):
    """Log-likelihoods by the definition: one forward pass for each option, the option's tokens summed."""
    answers = []
    for request in requests:
        header = turns(loaded.tokenizer, request.prefix, system)
        values = []
        for option in request.options:
            written = loaded.tokenizer.encode(option.strip(), add_special_tokens=False)
            with torch.no_grad():
                logits = loaded.model(torch.tensor([header + written])).logits[0].double()
            scores = logits.log_softmax(dim=-1)
            values.append(sum(float(scores[len(header) - 1 + i, token]) for i, token in enumerate(written)))
        answers.append(values)
    return answers


def written_one_at_a_time(loaded, prompts, n_new, system=None):
    return generated_one_at_a_time(loaded, [turns(loaded.tokenizer, prompt, system) for prompt in prompts], n_new)


# Log-likelihoods


@pytest.mark.parametrize("adds_bos", [False, True])
@pytest.mark.parametrize("template", [TEMPLATE, BARE], ids=["own start token", "none"])
@pytest.mark.parametrize("kind", first_of("llama", "gpt2", "gemma2", n=2))
@pytest.mark.parametrize("system", [None, "Answer with one letter."])
def test_options_are_scored_as_one_at_a_time_after_the_template(kind, template, adds_bos, system):
    loaded = chat_model(template, kind, adds_bos)
    expected = one_at_a_time(loaded, REQUESTS, system)
    scorer = CausalScorer(loaded, template=ChatTemplate(loaded, system))
    assert_equal_scores(scorer.score(REQUESTS), expected)
    plain = CausalScorer(loaded).score(REQUESTS)
    assert max(np.abs(p.loglikelihoods - e).max() for p, e in zip(plain, expected, strict=True)) > 0.01


def test_spaces_before_an_option_do_not_count():
    loaded = chat_model()
    scorer = CausalScorer(loaded, template=ChatTemplate(loaded))
    (score,) = scorer.score([Request("Who?", (" A", "\nA", "A", "\n\n B"), key="a/0")])
    assert score.n_tokens.tolist() == score.n_bytes.tolist() == [1, 1, 1, 1]
    assert len(set(score.loglikelihoods[:3].tolist())) == 1
    assert score.loglikelihoods[3] != score.loglikelihoods[0]
    with pytest.raises(QabiasError, match="request 'a/0': option '' adds no token"):
        scorer.score([Request("Who?", ("A", " "), key="a/0")])


# Written answers


@pytest.mark.parametrize("system", [None, "Answer with one letter."])
@pytest.mark.parametrize(("kind", "adds_bos"), [("llama", True), ("gpt2", False)])
def test_written_answers_are_those_of_one_prompt_at_a_time(kind, adds_bos, system):
    loaded = chat_model(kind=kind, adds_bos=adds_bos)
    expected = written_one_at_a_time(loaded, PROMPTS, 8, system)
    scorer = GenerationScorer(loaded, template=ChatTemplate(loaded, system), max_new_tokens=8)
    assert scorer.generate(PROMPTS, KEYS) == expected
    assert isinstance(scorer, TextScorer)
    assert scorer.name == "causal"
    assert GenerationScorer(loaded, max_new_tokens=8).generate(PROMPTS, KEYS) != expected


# Templates


def test_the_system_message_is_read_and_stands_instead_of_the_templates_own():
    loaded = chat_model(BARE)
    for system, begin in ((None, "Be kind."), ("Be brief.", "system: Be brief.")):
        header = loaded.tokenizer.decode(ChatTemplate(loaded, system).encode_prompts(["Who?"])["Who?"])
        assert header == f"{begin} user: Who? assistant:"


def test_a_template_without_system_messages_is_refused_where_there_is_one():
    with pytest.raises(QabiasError, match="no system role"):
        ChatTemplate(chat_model(NO_SYSTEM), "Be brief.")
    with pytest.raises(QabiasError, match="drops the system"):
        ChatTemplate(chat_model(DROPS_SYSTEM), "Be brief.")
    for template in (NO_SYSTEM, DROPS_SYSTEM):
        loaded = chat_model(template)
        assert_equal_scores(
            CausalScorer(loaded, template=ChatTemplate(loaded)).score(REQUESTS), one_at_a_time(loaded, REQUESTS)
        )


@pytest.mark.parametrize(
    ("template", "options", "fix"),
    [
        (NO_SYSTEM, {"system": "Be kind."}, "Remove option system"),
        (DROPS_SYSTEM, {"system": "Be kind."}, "Remove option system"),
        ("{{ tone + '' if tone else '' }}" + TEMPLATE, {"arguments": {"tone": 3}}, r"Remove option template\.tone"),
        ("{{ raise_exception('no') }}", {"system": "Be kind.", "arguments": {}}, "chat=no"),
        ("{{ raise_exception('no') }}", {}, "chat=no"),
    ],
)
def test_a_template_that_fails_names_the_option_to_leave_out(template, options, fix):
    with pytest.raises(QabiasError, match=f"fix: .*{fix}"):
        ChatTemplate(chat_model(template), **options)


def test_a_template_that_writes_the_date_is_warned_of():
    loaded = chat_model(DATED)
    with pytest.warns(UserWarning, match="date"):
        template = ChatTemplate(loaded)
    assert list(template.encode_prompts(["Who?"])["Who?"]) == turns(loaded.tokenizer, "Who?")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ChatTemplate(chat_model())


# As an option of the scorer


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Saved models whose tokenizers have, and have not, a chat template."""
    saved = {}
    for name, template in (("chat", TEMPLATE), ("plain", None)):
        loaded = chat_model(template)
        saved[name] = str(tmp_path_factory.mktemp(name))
        tiny_models.make_model("llama", max_position_embeddings=2048).save_pretrained(saved[name])
        loaded.tokenizer.save_pretrained(saved[name])
    return saved


def load(model, **options):
    return load_scorer("causal", model, device="cpu", scorer_options=options)


def test_chat_is_off_unless_asked_for(folders):
    loaded = load_model(CAUSAL, folders["chat"], device="cpu")
    plain, chat = (scorer.score(REQUESTS) for scorer in (CausalScorer(loaded), load(folders["chat"], chat="yes")))
    assert_equal_scores(chat, one_at_a_time(loaded, REQUESTS))
    for options, expected in (({}, plain), ({"chat": "no"}, plain), ({"chat": "auto"}, chat)):
        assert_equal_scores(load(folders["chat"], **options).score(REQUESTS), [s.loglikelihoods for s in expected])
    system = load(folders["chat"], chat="auto", system="Be brief.").score(REQUESTS)
    assert_equal_scores(system, one_at_a_time(loaded, REQUESTS, "Be brief."))
    written = {"mode": "generate", "max_new_tokens": "6"}
    answers = load(folders["chat"], chat="yes", system="Hm.", **written).generate(PROMPTS, KEYS)
    assert answers == written_one_at_a_time(loaded, PROMPTS, 6, "Hm.")
    plain_answers = GenerationScorer(loaded, max_new_tokens=6).generate(PROMPTS, KEYS)
    assert load(folders["plain"], chat="auto", **written).generate(PROMPTS, KEYS) == plain_answers
    assert_equal_scores(load(folders["plain"], chat="auto").score(REQUESTS), [score.loglikelihoods for score in plain])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"system": "Be brief."}, "chat=yes"),
        ({"chat": "no", "system": "Be brief."}, "chat=yes"),
        *(({"chat": "yes", "system": text}, "one line") for text in ("Be\nbrief.", "a|b", "")),
        ({"chat": "yes"}, "no chat template"),
        ({"chat": "auto", "system": "Be brief.", "mode": "generate"}, "no chat template"),
        ({"layout": "flat", "mode": "generate"}, "layout is for"),
    ],
)
def test_bad_options_are_named(folders, options, message):
    with pytest.raises(QabiasError, match=message):
        load(folders["plain"], **options)


# Runs


def test_a_run_says_in_its_signature_that_it_chatted(folders, tmp_path):
    arguments = RunArguments(
        "bbq", folders["chat"], config="Age", format="letters", limit=8, options={"chat": "yes", "system": "Be brief."}
    )
    result = run(arguments, tmp_path / "run")
    assert "|scorer:causal+chat=yes+system=Be brief.|" in result.signature
    assert sum(result.scores[f"share_position_{place}"] for place in range(3)) == pytest.approx(1)
