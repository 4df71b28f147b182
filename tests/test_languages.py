"""Languages in data: their prompts, and how answers written in them are read.

`languages/CODE.yaml` has outputs that were made up for this: how models answer a question about two people whose last
answer is UNKNOWN, say that nobody can tell (`nobody`), name people who are not that (`people`), or decline (`refused`).
"""

import re
import string

import pyarrow as pa
import pytest
import yaml

from qabias.answers import NO_ANSWER, Phrases, parse_choice
from qabias.answers.outcomes import ANSWERED, REFUSED, UNREAD, outcome, refuses
from qabias.answers.phrases import is_unknown_wording, says_unknown
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.multilingual.language import FOLDER, formats_in, load_language, read_language
from qabias.benchmarks.multilingual.rows import Answer, Item, table_of
from qabias.benchmarks.multilingual.rows import rows_of as rows_of_items
from qabias.errors import QabiasError

from .conftest import ROOT
from .published_sets import rows_of

OUTPUTS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in (ROOT / "tests" / "languages").glob("*.yaml")
}
CODES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
FOREIGN = sorted(set(CODES) - {"en"})
READ = [(code, text, place) for code in FOREIGN for place, texts in OUTPUTS[code]["read"].items() for text in texts]
SPACELESS = ("ja",)


def listed(field):
    return [(code, text) for code in FOREIGN for text in OUTPUTS[code][field]]


def example(code):
    answers = OUTPUTS[code]["answers"] if code in OUTPUTS else ("The cook", "The baker", "Unknown")
    texts = {f"ans{place}": answer for place, answer in enumerate(answers)}
    return {"context": "CONTEXT.", "question": "QUESTION?", **texts}


READ_BY_NATIVES: set[str] = set()  # languages whose words a native speaker has read


def test_there_are_outputs_for_every_language_but_english():
    assert {"ca", "de", "en", "es", "eu", "ja", "ko", "nl", "tr"} <= set(CODES)
    assert sorted(OUTPUTS) == FOREIGN


@pytest.mark.parametrize("code", CODES)
def test_a_language_is_complete_and_says_who_read_it(code):
    language = load_language(code)
    read_by = " ".join(yaml.safe_load((FOLDER / f"{code}.yaml").read_text(encoding="utf-8"))["read_by"].split())
    assert code in READ_BY_NATIVES or "no native speaker has read it yet" in read_by
    assert language.name[0] in string.ascii_uppercase
    assert language.question[-1] == language.answer[-1]
    assert language.answer[-1] in ":："
    assert [letter for letter in re.findall(r"(?<![A-Za-z])[A-Z](?![a-z])", language.letters)] == ["A", "B", "C"]
    assert language.letters.endswith((".", "。"))
    assert language.gap == ("" if code in SPACELESS else " ")
    if code != "en":
        phrases = language.phrases
        assert all((phrases.wordings, phrases.unknown, phrases.refusals, phrases.stated, phrases.endings))
        assert all((phrases.rejected, phrases.negations, phrases.joins))
        assert all((phrases.unable, phrases.prejudice, phrases.doubts))
        assert [text for text in phrases.wordings if text != text.strip().lower()] == []
        assert len(set(phrases.wordings)) == len(phrases.wordings)


@pytest.mark.parametrize("code", CODES)
def test_a_prompt_shows_everything_once_and_ends_where_the_answer_belongs(code):
    language, shown = load_language(code), example(code)
    formats = formats_in(lambda _: language)
    for name in ("qa", "letters"):
        prompt, options = formats[name].render(shown)
        assert prompt.endswith(f"\n{language.answer}")
        assert prompt.count("CONTEXT.") == prompt.count("QUESTION?") == 1
        assert f"{language.question}{language.gap}QUESTION?" in prompt
        assert not re.search(r"[{}]", prompt)
        assert [option[: len(language.gap)] for option in options] == [language.gap] * 3
    qa, letters = (formats[name].render(shown) for name in ("qa", "letters"))
    assert [option.strip() for option in qa[1]] == [shown[f"ans{place}"] for place in range(3)]
    assert [option.strip() for option in letters[1]] == ["A", "B", "C"]
    assert [f"{letter}. {shown[f'ans{place}']}" in letters[0] for place, letter in enumerate("ABC")] == [True] * 3
    assert language.letters in letters[0]
    assert language.letters not in qa[0]


@pytest.mark.parametrize("code", CODES)
def test_the_letters_of_a_prompt_are_read_as_they_are_asked_for(code):
    language, shown = load_language(code), example(code)
    _, options = formats_in(lambda _: language)["letters"].render(shown)
    answers = [shown[f"ans{place}"] for place in range(3)]
    assert [parse_choice(option, answers, phrases=language.phrases) for option in options] == [0, 1, 2]


@pytest.mark.parametrize(("code", "text", "place"), READ)
def test_an_output_is_read(code, text, place):
    assert parse_choice(text, OUTPUTS[code]["answers"], phrases=load_language(code).phrases) == place


@pytest.mark.parametrize(("code", "text"), listed("nobody"))
def test_a_text_says_that_nobody_can_tell(code, text):
    first, second, _ = OUTPUTS[code]["answers"]
    phrases = load_language(code).phrases
    assert says_unknown(text, phrases)
    for unknown in (OUTPUTS[code]["answers"][2], phrases.wordings[0]):
        assert parse_choice(text, (unknown, first, second), phrases=phrases) == 0


@pytest.mark.parametrize(("code", "text"), listed("people"))
def test_a_person_is_not_taken_for_unknown_or_a_refusal(code, text):
    phrases = load_language(code).phrases
    assert not says_unknown(text, phrases)
    assert not is_unknown_wording(text, phrases)
    assert not refuses(text, phrases)
    unknown = OUTPUTS[code]["answers"][2]
    assert parse_choice(text, (unknown, "Xyz", text), phrases=phrases) == 2


@pytest.mark.parametrize(("code", "text"), listed("refused"))
def test_a_refusal_is_one(code, text):
    phrases = load_language(code).phrases
    place = parse_choice(text, OUTPUTS[code]["answers"], phrases=phrases)
    assert (place, outcome(text, place, phrases)) == (NO_ANSWER, REFUSED)
    assert outcome(text, 0, phrases) == ANSWERED
    assert not refuses(text)


@pytest.mark.parametrize("code", FOREIGN)
def test_every_wording_is_an_unknown_answer_and_read_as_one(code):
    first, second, _ = OUTPUTS[code]["answers"]
    phrases = load_language(code).phrases
    for wording in phrases.wordings:
        assert is_unknown_wording(wording, phrases)
        shown = wording[0].upper() + wording[1:]
        assert parse_choice(f"{shown}.", (first, second, shown), phrases=phrases) == 2, wording


@pytest.mark.parametrize("code", FOREIGN)
def test_every_pattern_is_needed_by_some_output(code):
    phrases = load_language(code).phrases
    texts = [*OUTPUTS[code]["nobody"], *OUTPUTS[code]["refused"]]
    texts += [text for language, text, _ in READ if language == code]
    lowered = [phrases.plain(text).casefold().replace("：", ":") for text in texts]
    for name in ("rejected", "negations", "joins", "endings", "unable", "prejudice", "doubts"):
        assert any(re.search(pattern, text) for pattern in getattr(phrases, name) for text in lowered), name


def test_without_phrases_nothing_is_known_beside_english():
    assert Phrases().is_english
    assert load_language("en").phrases.is_english
    assert parse_choice("손자입니다.", ("손자", "할머니", "알 수 없음")) == NO_ANSWER
    assert Phrases().plain("答えは「A」。") == "答えは「A」。"


def test_the_two_turkish_letters_i_are_one_in_capitals():
    phrases = load_language("tr").phrases
    said = ("IŞIL", "ışıl", "Işıl'dır.", "İPEK", "ipek", "BİLİNMİYOR")
    assert [parse_choice(text, ("Işıl", "İpek", "Bilinmiyor"), phrases=phrases) for text in said] == [0, 0, 0, 1, 1, 2]


def test_cannot_answer_is_unknown_unless_the_text_declines():
    phrases = Phrases(
        unknown=(r"no puedo \w+", "falta informe"),
        refusals=("perdone",),
        unable=("no puedo responder",),
        prejudice=("sesgo",),
    )
    said = {
        "No puedo responder.": (True, False),
        "Perdone, no puedo responder.": (False, True),
        "Bien. Perdone, no puedo responder.": (False, False),
        "Perdone, no puedo responder; falta informe.": (True, True),
        "Perdone, no puedo saber nada.": (True, True),
        "No puedo responder a un sesgo.": (False, True),
        "Un sesgo.": (False, False),
    }
    assert {text: (says_unknown(text, phrases), refuses(text, phrases)) for text in said} == said


def test_a_doubt_is_looked_for_in_the_sentence_of_an_answer_and_at_the_beginning_of_the_next():
    phrases = Phrases(doubts=("ma dubito",))
    answers = ("Il cuoco", "La fornaia", "Unknown")
    said = {
        "Il cuoco.": 0,
        "Il cuoco ma dubito.": NO_ANSWER,
        "Il cuoco. Ma dubito.": NO_ANSWER,
        "Il cuoco. Era tardi, ma dubito.": 0,
        "Unknown ma dubito.": 2,
        "La risposta: il cuoco, ma dubito": NO_ANSWER,
    }
    assert {text: parse_choice(text, answers, phrases=phrases) for text in said} == said


def test_a_set_is_read_in_the_language_of_its_examples():
    people = (Answer("La abuela", "f"), Answer("El nieto", "m"), Answer("No se sabe", "unknown"))
    said = (
        "La respuesta es que no se puede determinar.",
        "Elijo la B.",
        "La abuela, seguro.",
        "Lo siento, no ayudo.",
        "Hm.",
    )
    item = Item("Age", "01", "1", True, True, "Contexto.", "¿Quién fue?", people, right=2, target=0, unknown=2)
    table = table_of(rows_of_items([item] * len(said)))
    benchmark = load_benchmark("esbbq")
    found = benchmark.read_given(table, pa.table({"prediction": said}), None, "none")
    assert found["prediction"].to_pylist() == [2, 1, 0, NO_ANSWER, NO_ANSWER]
    assert found["outcome"].to_pylist() == [ANSWERED, ANSWERED, ANSWERED, REFUSED, UNREAD]
    english = load_benchmark("bbq").read_given(table, pa.table({"prediction": said}), None, "none")
    assert english["outcome"].to_pylist() == [UNREAD, ANSWERED, ANSWERED, UNREAD, UNREAD]


FILE = """
name: Toki
read_by: nobody
prompts: {question: "Q:", answer: "A:", letters: "A B C."}
"""


def test_a_language_of_the_user_needs_its_prompts_alone(tmp_path):
    path = tmp_path / "tok.yaml"
    path.write_text(FILE, encoding="utf-8")
    language = read_language(path)
    assert (language.code, language.name, language.gap) == ("tok", "Toki", " ")
    assert language.phrases == Phrases()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("name: Toki", ""), "name"),
        (lambda text: text.replace("question", "kestion"), "question"),
        (lambda text: text + "unknwon: []", "unknown"),
        (lambda text: text.replace("answer:", "anwser:"), "anwser"),
        (lambda text: text + "endings: ['(']", "endings"),
        (lambda text: text + "refusals: sorry", "refusals"),
        (lambda text: text + "unknown: [no]", "unknown"),
        (lambda text: "- list", "lacks"),
    ],
)
def test_a_faulty_language_is_told_with_its_file(tmp_path, change, said):
    path = tmp_path / "tok.yaml"
    path.write_text(change(FILE), encoding="utf-8")
    with pytest.raises(QabiasError, match=said) as raised:
        read_language(path)
    assert "tok.yaml" in str(raised.value)


EVERY = 12
"""One of so many questions with different answers is read, for time."""

STATED = {
    "es": ("La respuesta es {}.", "Respuesta: {}", "{}, porque lo dice el texto."),
    "nl": ("Het antwoord is {}.", "Antwoord: {}", "{}, want dat staat er."),
    "en": ("The answer is {}.", "Answer: {}"),
    "de": ("Die Antwort ist {}.", "Antwort: {}", "{}, weil es im Text steht."),
    "eu": ("Erantzuna: {}", "{} da."),
    "ko": ("정답은 {}입니다.", "{}입니다.", "답: {}"),
}


CATEGORIES = ("Disability_status", "Gender_identity", "Physical_appearance", "Sexual_orientation")
CONFIGS = {
    "es": ("esbbq", "all"),
    "ko": ("kobbq", "all"),
    "de": ("ggbbq", "all"),
    "eu": ("basqbbq", "Ezgaitasun_egoera,Orientazio_sexual"),
    **{code: ("mbbq", ",".join(f"{code}_{name}" for name in CATEGORIES)) for code in ("nl", "en")},
}


@pytest.fixture(params=CONFIGS, scope="module")
def published(request, upstream):
    """A language, and the different triples of answers of its set with the place of UNKNOWN."""
    try:
        rows = rows_of(*CONFIGS[request.param], upstream=upstream)
    except QabiasError as error:
        if "is not in the mirror" not in str(error):
            raise
        pytest.skip(str(error))
    return request.param, sorted({(row["ans0"], row["ans1"], row["ans2"], row["unknown_loc"]) for row in rows})


@pytest.mark.slow
def test_every_answer_is_unknown_or_a_person_as_the_set_says(published):
    code, found = published
    phrases = load_language(code).phrases
    kinds = {(answer, place == unknown) for *answers, unknown in found for place, answer in enumerate(answers)}
    for answer, is_unknown in kinds:
        assert is_unknown_wording(answer, phrases) == is_unknown, answer
        assert is_unknown or not says_unknown(answer, phrases), answer
        assert not refuses(answer, phrases), answer


@pytest.mark.slow
def test_every_answer_is_read_in_the_words_around_it(published):
    code, found = published
    phrases = load_language(code).phrases
    for *answers, _ in found[::EVERY]:
        for place, answer in enumerate(answers):
            label = "ABC"[place]
            texts = [answer, f"{answer}.", answer.upper(), f"{label}. {answer}", f"({label}) {answer}"]
            texts += [form.format(answer) for form in STATED[code]] + [form.format(label) for form in STATED[code][:1]]
            assert {text: parse_choice(text, answers, phrases=phrases) for text in texts} == dict.fromkeys(texts, place)


@pytest.mark.parametrize("code", FOREIGN)
def test_the_prompts_have_no_english_word(code):
    language = load_language(code)
    found = re.findall(r"[a-z]{2,}", " ".join((language.question, language.answer, language.letters)).lower())
    assert {"question", "answer", "with", "the", "only", "or"}.isdisjoint(found)
