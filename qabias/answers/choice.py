"""Which of several listed answers a text gives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from qabias.answers.outcomes import NO_ANSWER, is_cut, refuses, set_thinking_aside
from qabias.answers.phrases import (
    ANSWER_WORDS,
    COMMON,
    ENGLISH,
    FINAL,
    MARKS,
    NEGATION,
    SENTENCE,
    STATED,
    TOKEN,
    Phrases,
    bare,
    before_frame,
    contents,
    is_unknown_wording,
    lowered,
    pattern_of,
    says_unknown,
    straight,
    unknown_place,
)

LABELS = "ABC"  # of the answers in a prompt, unless it has others

# A mention of an answer by its words, and one by its label, are one character each: the place added to these.
_BY_WORDS, _BY_LABEL = 0xE000, 0xE100
_WORDS, _LABEL, _ANY = r"[\ue000-\ue0ff]", r"[\ue100-\ue1ff]", r"[\ue000-\ue1ff]"
_PRIVATE = re.compile(r"[\ue000-\uf8ff]")
_LABELED, _WORDED, _MENTION = re.compile(_LABEL), re.compile(_WORDS), re.compile(_ANY)

_LETTER, _NO_WORD = r"[A-Za-z0-9À-ԯ]", r"(?:[^\w\ue000-\ue1ff]|_)*"  # a letter of another script is no part of a word
_BEGINS = re.compile(rf"(?:^|\n){_NO_WORD}$")
_CLOSES = re.compile(rf"[\s{MARKS}]*(?:[.):\]：、\\}}<,]|\n|$)")
_NEAR = 300  # characters that are read after what leads to an answer
# How much a statement counts: the highest level decides, and 0 and 1 together. Or what it does to others.
_CORRECTS, _OUT, _HINTED, _NAMED, _CONCLUDED, _STATED, _FINAL = range(-2, 5)

_AROUND = rf"[\s{MARKS}(\[{{:]*"
_LEADING = "clearly|therefore|thus|still|then|most|likely|option|choice|letter|that|it|is|the|las?|el|le|die"
_LEAD = rf"{_AROUND}(?:(?:{_LEADING})\b{_AROUND}){{0,4}}"
_JOINS = "oder|und|ou|et|y|o|e|of|en|eller|och|og|lub|albo|veya|atau|или|и|hoặc"
_BOTH = re.compile(
    rf"(?i)[\s{MARKS})\].,]*(?:\w+ )?(?:(?:(?:and/)?or|and|nor|{_JOINS})\b|[/&])"
    rf"(?: (?:maybe|perhaps|possibly|option))*[\s{MARKS}(\[]*{_ANY}"
)
_AT = re.compile(f"(?i){_LEAD}({_ANY})")
# Nothing in JSON, or a label that the prompt does not have
_NO_OPTION = re.compile(rf"\"\"|null\b|\[\]|\{{\}}|(?i:{_LEAD})(?!A|I)[A-Z](?=[\s{MARKS}]*(?:[.):]|\n|$))")
_LED = re.compile(rf"(?i)(?:{ANSWER_WORDS}|letter|choose|select)[\s{MARKS}]*(?:(?:is|be|was)\b|[:：=-]+>?)?{_AROUND}$")
# What may follow a capital "A" that is no article.
_NO_NOUN = re.compile(rf"(?i)(?:{_JOINS}|is|was|or|and|nor|but|because|since|as|given|would|can\S*|for|if|not|it)\b")
_CLAUSE = re.compile(
    r"(?i)([,;:：—–()|→⇒]|\s-+\s|[-=]+>|\b(?:but|whereas|while|although|though|however|because|since|given|due to|"
    r"considering|so(?! (?:could|might|may|can|did|do|does|is|was|has|had)\b)|therefore|thus|hence|meaning|leaving|"
    r"leaves|if)\b|\bas(?= (?:\W|(?:the|there|it|he|she|they|no)\b)))"
)
_CONTRASTS = {"although", "though", "while"}
_REASONS = {*_CONTRASTS, "because", "since", "given", "considering", "as", "if", "due to"}
_CONCLUDES = {"so", "therefore", "thus", "hence", "meaning", "leaving", "leaves"}
_TAKES_BACK = re.compile(
    r"(?i)^\W*(?:(?:no|nope|sorry|hmm)\W*$|no wait|(?:actually|wait|hold on|(?:or )?rather|correction|edit)\b)|"
    r"\b(?:corrected|second thought|(?:take|change|scratch) (?:that|it|my)|misread|reconsider|rereading|i mean|meant)\b"
)
_RULED_OUT = re.compile(
    r"(?i)\b(?:unlikely to be the (?:answer|one)|neither|rul(?:ed?|es|ing) out|eliminat\w+|reject\w*|exclud\w+|"
    r"discard\w*|unsupported|(?:is|are|was|were|be|seems?) (?:\w+ )?(?:wrong|incorrect|false)|"
    r"(?<=not|n't) (?:(?:be|likely|necessarily|really|supported|stated|correct|right|it|apply|fit|described|"
    r"(?:the|an?|my) (?:\w+ ){0,2}(?:answer|option|choice|one))\s*)+\W*$)"
    rf"|(?<=not|n't) (?:(?:option|be|likely)\s+)?{_ANY}"
)
_ELLIPTIC = re.compile(rf"(?i){_WORDS} (?:did|does|was|is|had|has|could|can)\W*$")
_IDENTIFIES = re.compile(rf"(?i)\bit(?:'s| is| was) {_ANY} (?:who|fault)\b")
_UNSURE = re.compile(r"(?i)\b(?:(?:not|n't) (?:be )?(?:\w+ )?(?:sure|certain)|unsure|uncertain)\b")
_IS_ANSWER = re.compile(rf"(?i){_ANY}\W+(?:is|was|must be) (?:the )?(?:\w+ )?(?:answer|choice|option|correct|right)\b")
_HEDGE = re.compile(r"(?i)\b(?:might|may|could|possibl[ey]|plausible|suggests?|seems?)\b")
_SUPPOSED = re.compile(
    r"(?i)\b(?:stereotyp\w+|assum\w+|whether|suppos\w+|being|saying|torn|tempting|initially|first|some (?:would|may))\b"
)
_LISTS = re.compile(r"(?i)\b(?:consider|look|check|evaluat|regarding|start|identif|people|between|list)")
_ENDS_WITH_LABEL = re.compile(rf"(?is)^\W*(?:[^\W_]+\W+){{0,9}}?[^\W_]*{_LABEL}[\s{MARKS}.!。)\]]*$")
_NOT_ANYWHERE = re.compile(rf"{NEGATION.pattern}|\b(?:nicht|pas|non|não|не|niet|ikke|inte|nie|değil)\b|[不非没]|아니")
_INSTEAD = re.compile(r"(?is)\b(?:rather than|instead of|and not|not|than|over|unlike)\b.*")
_TICK = re.compile(r"[✓✔✅☑]|[\[(][xX][\])]")
_VERDICT = re.compile(
    rf"(?i)[\s{MARKS}|(:.–—-]*(?:is |was )?(?:(?:the )?(correct|right|yes|true|supported)|incorrect|wrong|false|"
    r"no(?=\W*$)|unsupported|not (?:correct|right|stated|supported|mentioned|the (?:right )?(?:answer|one)))\b(?! +\w)"
)
# Answers by their number, for labels that are letters.
_NUMBERS = ("first", "second", "third", "1st", "2nd", "3rd", "one", "two", "three", "1", "2", "3")
_NTH = "first|second|third|last|1st|2nd|3rd"
_ORDINAL = re.compile(
    r"(?i)(?:\b(?:options?|choice)|\b(?:choice|answer) is (?:number|no\.?)|^\W*(?:number|#)) ?(?:number |no\. ?|#)?"
    r"([123]|one|two|three)\b(?! of\b|[.,]\d| ?%|-)|"
    rf"(?:(?<!\w)|\bthe )({_NTH})(?:(?= (?:and|or) (?:the )?(?:{_NTH}))| (?:listed )?(?:options?|answers?)\b)|"
    rf"^\W*(?:the )?({_NTH})(?: one)?(?=\W*$)"
)
# A value for every answer: probabilities, or true and false.
_VALUE = re.compile(rf"(?i)({_ANY})(?:\s*\))?[\s{MARKS}|:=.–—(-]*(?:is )?(\d+(?:\.\d+)?|\.\d+|true|false)\b")
_LISTED = re.compile(rf"(?m)^{_NO_WORD}(?:option |the )?(?:({_LABEL})|[A-Z](?=[.):]))[\s{MARKS}]*(?:[.):\]]|$)(.*)$")
_FIRST_OF_TWO = re.compile(rf"(?i){_NO_WORD}(?:{_ANY}{_NO_WORD})?(?:or|and) {_NO_WORD}(?:{_ANY}|an?\b)")
# A label and at once the words of an answer, also in the next field of JSON, and the other way round there
_AGAINST = re.compile(
    rf"{_LABEL}(?:[\s{MARKS}.:,：()\]—–-]*|,\s*\"(?!final)\w+\":\s*\"){_WORDS}[\s{MARKS})\]]*(?:[.;!,}}\n]|$)|"
    rf":\s*\"{_WORDS}\",\s*\"\w+\":\s*{_LABEL}"
)
_ENUMERATES = re.compile(r"(?i)\b(?:options|opciones|optionen|choices|possibilities) (?:are|is|were|son|sind)\b")


class _Statement(NamedTuple):
    place: int
    level: int


def parse_choice(
    text: str,
    answers: Sequence[str],
    labels: str = LABELS,
    phrases: Phrases = ENGLISH,
    asked: str = "",
    context: str = "",
) -> int:
    """Return which of the listed answers a text gives by its strongest statement, or `NO_ANSWER` for none or two.

    The question decides what a sentence about an answer means.

    Raises:
        ValueError: There are fewer labels than answers.
    """
    if 0 < len(labels) < len(answers):
        raise ValueError(f"{len(answers)} answers but the labels {labels!r}")
    said = straight(set_thinking_aside(text).answer)
    reader = _Reader(answers, labels, phrases, asked)
    said = re.sub(r"(?im)^(\W*q\W*:.*\n+\W*)a\s*:", r"\1answer:", phrases.plain(said))
    before = before_frame(said, reader.answers, asked, context)
    return reader.read(before, is_cut(text) and before == said)


class _Reader:
    def __init__(self, answers: Sequence[str], labels: str, phrases: Phrases, asked: str) -> None:
        self._phrases = phrases
        self._n = len(answers)
        self._unknown = unknown_place(answers, phrases)
        self._asks = straight(asked)
        self._asked, self._shared = contents(self._asks), contents(" ".join(map(straight, answers)))
        self._labels = {straight(label).casefold(): place for place, label in enumerate(labels[: self._n])}
        self._wordings = [bare(self._phrases.plain(answer)) for answer in answers]
        self._option, self._places = self._option_pattern(answers)
        any_label = "|".join(map(re.escape, self._labels)) or "(?!)"
        self._is_lettered = any_label.replace("|", "").isalpha()
        kind = "0-9" if any_label.replace("|", "").isdigit() else "a-wyz"
        self._other_label = rf"(?i)[\s{MARKS}]*(?:\([{kind}]\)|[{kind}][.)](?=\s))"  # one that the prompt does not have
        suffix = r"['-]\w" if phrases.is_english else r"-\w"
        self._label = re.compile(
            rf"(?<!{_LETTER})(?<![^\W_]['-])(?:{any_label})(?!{_LETTER}|{suffix}|[.,]\d|%)", re.IGNORECASE
        )

    def _option_pattern(self, answers: Sequence[str]) -> tuple[re.Pattern[str], list[int]]:
        own = (re.escape(one) + ("" if one.endswith("'") else r"\s+") for one in self._phrases.articles)
        articles = "|".join((r"(?:the|an?|his|her|my|their)\s+", *own))
        whole = [" ".join(TOKEN.findall(lowered(self._phrases.plain(answer)))) for answer in answers]
        short = [re.sub(f"^(?:{articles})", "", one) for one in whole]
        names = {tuple(name.split()): place for place, name in reversed([*enumerate(whole), *enumerate(short)]) if name}
        for place, name in enumerate(short if self._phrases.is_english else ()):
            known = {word for one in short[:place] + short[place + 1 :] for word in one.split()} | COMMON
            if not is_unknown_wording(answers[place]):
                telling = {*name.split()} - known - {*TOKEN.findall(self._asks.casefold())}
                names = {(word,): place for word in telling if len(word) > 2} | names
        spaced = {words: self._phrases.is_english or words[0][0] < "\u0530" for words in names}
        # Words with spaces between them come first; one beginning is never of both kinds.
        phrases = sorted(names, key=lambda words: (not spaced[words], -sum(map(len, words))))
        endings = "" if self._phrases.is_english else f"|(?={pattern_of(self._phrases.endings).pattern})"
        joined = [(r"[\s·/-]{1,3}".join(map(re.escape, words)), spaced[words]) for words in phrases]
        apart, within = ("|".join(f"({one})" for one, is_apart in joined if is_apart is kind) for kind in (True, False))
        ends = rf"(?:(?:'s|s)?(?!{_LETTER}){endings})"
        either = "|".join(filter(None, [apart and rf"(?<![^\W_])(?:{apart}){ends}", within])) or "(?!)"
        option = re.compile(rf"(?:(?<![^\W_])(?:{articles}))?(?:{either})", re.IGNORECASE)
        return option, [names[words] for words in phrases]

    def answers(self, text: str, is_bare: bool) -> bool:
        rest = TOKEN.search(_MENTION.sub("", self._marked(text))) if is_bare else None
        return rest is None and self.read(text) != NO_ANSWER

    def read(self, text: str, is_cut: bool = False) -> int:
        if (whole := bare(text)) in self._wordings:
            return self._wordings.index(whole)
        marked = self._marked(text)
        against = any(len({*map(_place, _MENTION.findall(one))}) > 1 for one in _AGAINST.findall(marked))
        if against or re.match(self._other_label, marked) or self._conflicts(marked):
            return NO_ANSWER
        if len({one[1] for one in _VALUE.finditer(marked)}) > 1 or _VALUE.fullmatch(marked.rstrip("% ")):
            return self._valued(marked)
        marked = self._without_listing(marked)
        if is_cut:  # without the last sentence
            ends = [one.end() for one in SENTENCE.finditer(marked.rstrip()) if _MENTION.search(marked[: one.end()])]
            marked = re.sub(r"\n\W*\d+[.)][^\n]*$", "", marked[: ends[-1]] if ends else marked)
        made = self._statements(marked)
        first = re.match(rf"{_NO_WORD}({_WORDS})[\s{MARKS}]*(?:[.,]|\n|$)", marked)
        corrections = [number for number, one in enumerate(made) if one.level == _CORRECTS]
        stated = {one.place for one in made if one.level == _STATED}
        is_against = bool(first and stated - {_place(first[1])})
        for label, words in re.findall(rf"({_LABEL})[\s{MARKS}.:,]*({_WORDS})", marked):  # "B. The cook did it."
            is_against |= _Statement(_place(words), _NAMED) in made and _place(label) != _place(words)
        if len(corrections) > 1 or (is_against and not corrections):  # a loop, or a letter against a name
            return NO_ANSWER
        statements = made[corrections[-1] :] if corrections else made
        top = max((one.level for one in statements), default=_OUT)
        if top < _STATED and refuses(text) and not says_unknown(text, self._phrases):
            return NO_ANSWER
        places, hinted, ruled_out = (
            {one.place for one in statements if one.level == level} for level in (max(top, _HINTED), _HINTED, _OUT)
        )
        if top == _NAMED and len(hinted) == 1:
            places |= hinted  # "It may be the cook. We cannot tell."
        left = set(range(self._n)) - ruled_out
        if not places and len(left) == 1 and self._n > 2:
            return left.pop()
        return places.pop() if len(places) == 1 and places <= left else NO_ANSWER

    def _statements(self, text: str) -> list[_Statement]:
        made: list[_Statement] = []
        self._is_unknown = says_unknown(text, self._phrases)
        self._is_alone = len({*map(_place, _MENTION.findall(text))}) == 1
        is_ticked = _TICK.search(text) is not None
        for line in text.split("\n"):
            mention, verdict = _MENTION.search(line), _verdict(line)
            if mention and (verdict is not None or re.fullmatch(rf"{_NO_WORD}{_WORDS}{_NO_WORD}", line)):
                level = _OUT if verdict is False else _STATED if verdict or self._is_alone else _NAMED
                made.append(_Statement(_place(mention[0]), level))
            if verdict is not None or (is_ticked and mention and not re.search(r"\w", _MENTION.sub("", line))):
                continue
            for sentence in SENTENCE.split(line):
                is_first = all(one.level < _HINTED for one in made)
                made += self._sentence(sentence) if self._phrases.is_english else self._foreign(sentence, is_first)
        return made

    def _marked(self, text: str) -> str:
        text = _PRIVATE.sub("", text)
        text = self._option.sub(lambda one: chr(_BY_WORDS + self._places[(one.lastindex or 0) - 1]), text)
        if self._is_lettered:
            text = _ORDINAL.sub(self._as_ordinal, text)
        text = self._label.sub(lambda one: self._as_label(one, text), text)
        text = re.sub(rf"(?<!\w)[\[(<]?[{MARKS}]*({_LABEL})[{MARKS}]*[\])>]?", r"\1", text)
        # A label with its own words is one mention, and so are words of one answer that follow each other.
        text = re.sub(rf"({_LABEL})([\s{MARKS}.:：()\]—–-]*)({_WORDS})(?:\s*\))?", self._joined, text)
        text = re.sub(rf"({_WORDS})(?:[ -]+(?:(?:an?|the|of|with|in|on|his|her|and)\s+){{0,3}}\1)+", r"\1", text)
        return re.sub(rf"({_WORDS}) (?:with|in|wearing|from) (?:(?:an?|the|his|her)\s+)?[^\W_]+", r"\1", text)

    def _as_ordinal(self, match: re.Match[str]) -> str:
        word = match[match.lastindex or 0].lower()
        place = self._n - 1 if word == "last" else _NUMBERS.index(word) % 3
        return chr(_BY_LABEL + place) if place < self._n else match[0]

    def _as_label(self, match: re.Match[str], text: str) -> str:
        before, after = text[max(0, match.start() - 40) : match.start()], text[match.end() : match.end() + 40]
        rest, is_plain = after.lstrip(" " + MARKS), match[0].islower() and match[0].isascii()
        closes, own = _CLOSES.match(after), _WORDED.match(rest)
        is_first = _BEGINS.search(before) and (closes or (own and not is_plain))
        is_led = _LED.search(before) and (closes or own or not is_plain)
        is_enclosed = before[-1:] in ("(", "[") and after[:1] in (")", "]")
        is_label = bool(is_enclosed or is_first or is_led)
        is_word = is_plain or match[0].isdigit() or re.search(r"(?i)\b(?:an?|the|step|grade|vitamin) $", before)
        if not is_label and not is_word:
            goes_on = pattern_of(self._phrases.rejected + self._phrases.joins).match(rest) or _NO_NOUN.match(rest)
            is_noun = match[0] in "AÀ" and re.match(r"[^\W\d_]", rest) and not goes_on
            ending = pattern_of(self._phrases.endings).match(after)
            is_label = bool(not is_noun or ending or (self._phrases.is_english and not rest[:1].isascii()))
        return chr(_BY_LABEL + self._labels[match[0].casefold()]) if is_label else match[0]

    def _joined(self, match: re.Match[str]) -> str:
        begins = self._phrases.is_english and _BEGINS.search(match.string[max(0, match.start() - 40) : match.start()])
        # "(a) The baker" is two answers if the baker is another one; "A. The baker was late" is not
        return match[0] if _place(match[1]) != _place(match[3]) else f"{match[1]}." if begins else match[1]

    def _valued(self, text: str) -> int:
        listed = {(_place(one[1]), one[2].lower()) for one in _VALUE.finditer(text)}
        values = {place: float(value) if value[-1].isdigit() else float(value == "true") for place, value in listed}
        if not values or len(values) < len(listed):
            return NO_ANSWER
        best, *others = sorted(values, key=values.__getitem__, reverse=True)
        whole = max(sum(values.values()), 100 if "%" in text or values[best] > 1 else 1)
        is_clear = values[best] > whole / 2 and all(values[best] - values[one] >= 0.15 * whole for one in others)
        return best if is_clear else NO_ANSWER

    def _conflicts(self, text: str) -> bool:
        listed = _LISTED.finditer(text) if self._labels and self._phrases.is_english else ()
        return any(self._is_against(_place(one[1]), SENTENCE.split(one[2].strip())[0]) for one in listed if one[1])

    def _is_against(self, place: int, said: str) -> bool:
        if place != self._unknown and _FIRST_OF_TWO.match(said):
            return True
        places, words = {_place(one) for one in _MENTION.findall(said)}, TOKEN.findall(said)
        if says_unknown(said) or NEGATION.search(said) or not (places or words):
            return False
        if places := {_place(one) for one in _MENTION.findall(_INSTEAD.sub("", said))}:
            return len(places) == 1 and place not in places and re.match(rf"{_NO_WORD}{_ANY}", said) is not None
        has_form = re.match(r"(?i)\W*(?:the|an?) (?:[\w-]+ ){0,2}[\w-]+\W*$", said) or contents(said) & self._shared
        is_name = len(words) <= 4 and all(word[0].isupper() for word in words) and {*map(str.casefold, words)} - COMMON
        return bool(is_name or has_form)

    def _without_listing(self, text: str) -> str:
        if _TICK.search(text):
            return text
        text = "\n".join(line for line in text.split("\n") if not _ENUMERATES.search(line))
        lines = list(_LISTED.finditer(text))
        if len(lines) > 2 and (last := re.search(rf"\n\n[{MARKS}]*({_LABEL})[\s{MARKS}]*$", text)):
            return last[0] if last[1] in {one[1] for one in lines[:-1]} else ""  # a label in a paragraph after the list
        is_list = len({one[1] for one in lines}) > 1 and all(_verdict(one[0]) is None for one in lines)
        gap = rf"{_NO_WORD}(?:or|and)?{_NO_WORD}"
        for kind in (_LABEL, _WORDS) if self._n > 2 else ():
            each = ("".join(rf"(?!\{one})" for one in range(1, place)) + f"({kind})" for place in range(1, self._n + 1))
            text = re.sub(gap.join(each), "\n", text)
        return _LISTED.sub("", text) if is_list else text

    def _openings(self, sentence: str) -> Iterator[_Statement]:
        foreign = pattern_of(self._phrases.stated, after=rf"[\s{MARKS}]*:?")
        for level, pattern in ((_FINAL, FINAL), (_STATED, STATED), (_STATED, foreign)):
            for opening in pattern.finditer(sentence):
                match = _AT.match(sentence, opening.end())
                if match:
                    rest = sentence[match.end() : match.end() + _NEAR]
                    clause = re.split("[,;.]| and | but ", rest, maxsplit=1)[0]
                    denied = NEGATION.search(clause) and not NEGATION.search(self._asks)
                    denied = denied or pattern_of(self._phrases.rejected).match(rest.lstrip()) is not None
                    if denied or pattern_of(self._phrases.doubts).search(rest) or _RULED_OUT.search(match[1] + clause):
                        continue
                    is_asked = re.match(rf"[\s{MARKS}]*\?", rest) is not None
                    both = pattern_of(self._phrases.joins).match(rest.lstrip()) or _BOTH.match(rest)
                    yield _Statement(NO_ANSWER if both else _place(match[1]), _HINTED if is_asked else level)
                elif _NO_OPTION.match(sentence, opening.end()):
                    yield _Statement(NO_ANSWER, level)
                elif self._unknown is not None:
                    rest = re.split(r"(?<=[.!?])\s", sentence[opening.end() : opening.end() + _NEAR], maxsplit=1)[0]
                    if says_unknown(rest, self._phrases) and not _WORDED.search(rest):
                        yield _Statement(self._unknown, level)

    def _sentence(self, sentence: str) -> list[_Statement]:
        made = list(self._openings(sentence))
        is_question = sentence.rstrip().endswith("?")
        is_reason = in_front = concludes = begun = denies = False
        parts = [",", *_CLAUSE.split(sentence)]
        for mark, clause, after in zip(parts[::2], parts[1::2], [*parts[2::2], ""], strict=True):
            word = mark.casefold()
            if word in _REASONS:
                is_reason = not (begun and word in _CONTRASTS)
                in_front = not begun
            elif (word == "," and is_reason and in_front) or word in _CONCLUDES or word in ("but", "however", ";"):
                is_reason = False
            concludes = word in _CONCLUDES or (concludes and not begun)
            if _TAKES_BACK.search(clause):
                made = [*(one for one in made if one.level != _CORRECTS), _Statement(NO_ANSWER, _CORRECTS)]
            begun = begun or re.search(r"\w", clause) is not None
            if after == ":" and _LISTS.search(clause):
                break
            if is_reason or (after == ":" and not _LABELED.search(clause)):
                continue
            new = self._clause(clause, concludes)
            mention, before = _MENTION.search(clause), [one.level for one in made if one.level >= _HINTED]
            if before and not mention and (_UNSURE.search(clause) or _RULED_OUT.search(clause)):
                new = [_Statement(NO_ANSWER, before[-1])]
            if denies and not self._asks and any(_HINTED <= one.level < _STATED for one in new):
                continue
            denies = denies or bool(mention and not new and NEGATION.search(clause))
            made += [_Statement(one.place, min(one.level, _HINTED)) if is_question else one for one in new]
        is_about = is_question or _MENTION.search(sentence) or any(one.level >= _HINTED for one in made)
        if self._unknown is not None and not is_about and says_unknown(sentence):
            made.append(_Statement(self._unknown, _NAMED))
        return made

    def _clause(self, clause: str, concludes: bool) -> list[_Statement]:
        places = {_place(one) for one in _MENTION.findall(clause)}
        people = places - {self._unknown}
        if re.match(rf"(?i)\W*or {_ANY}", clause):
            return [_Statement(NO_ANSWER, _NAMED)]
        if _RULED_OUT.search(clause) and people:
            return [_Statement(place, _OUT) for place in places]
        if len(places) > 1:
            head = _INSTEAD.sub("", clause)
            if len({_place(one) for one in _MENTION.findall(head)}) == 1:
                return self._clause(head, concludes)
        level = _CONCLUDED if concludes else _NAMED
        says = places == {self._unknown} or says_unknown(clause) or re.fullmatch(r"(?i)\W*neither\W*", clause)
        if self._unknown is not None and says and not _LABELED.search(clause):
            return [_Statement(self._unknown, level)] if len(people) != 1 else []
        if len(places) != 1 or _SUPPOSED.search(clause):
            return []
        (place,) = places
        is_hint = _HEDGE.search(clause) is not None
        if _ENDS_WITH_LABEL.search(clause) and not _LISTS.search(clause) and not _NOT_ANYWHERE.search(clause):
            return [_Statement(place, _HINTED if is_hint else _STATED)]
        if len(_WORDED.findall(clause)) > 1:
            return []
        is_hint = is_hint and not _HEDGE.search(self._asks)
        denied, asks_denied = (NEGATION.search(text) is not None for text in (clause, self._asks))
        if _IS_ANSWER.search(clause) and not denied:
            return [_Statement(place, _HINTED if is_hint else _STATED)]
        others = contents(_MENTION.sub(" ", clause)) - self._shared
        shared = others & self._asked
        is_asked = 2 * len(shared) > len(self._asked) > 0
        if others - shared and not (is_asked if self._asks else concludes or _IDENTIFIES.search(clause)):
            return [_Statement(place, _HINTED)] if is_hint and not self._asks else []
        still_denied = denied and not (asks_denied and NEGATION.search(re.split(_ANY, clause, maxsplit=1)[1]))
        if still_denied or (asks_denied and not denied and (shared or _ELLIPTIC.search(clause))):
            return []
        return [_Statement(place, _HINTED if is_hint else level)]

    def _foreign(self, sentence: str, is_first: bool) -> list[_Statement]:
        stated, phrases = list(self._openings(sentence)), self._phrases
        mentions = list(_MENTION.finditer(sentence))
        if stated or sentence.rstrip().endswith(("?", "？")):
            return stated
        places = {_place(one[0]) for one in mentions}
        is_unknown = self._is_unknown and says_unknown(sentence, phrases)
        if places == {self._unknown} or (len(places - {self._unknown}) != 1 and is_unknown):
            return [] if self._unknown is None else [_Statement(self._unknown, _NAMED)]
        if not mentions:
            is_doubt = not is_first and pattern_of(phrases.doubts).match(" ".join(TOKEN.findall(sentence.casefold())))
            return [_Statement(NO_ANSWER, _NAMED)] if is_doubt else []
        place, rest = _place(mentions[0][0]), sentence[mentions[0].end() :].lstrip(" )" + MARKS)
        parts = [rest, *re.split("[,;:—–.]", rest)[:1]]
        begins = re.fullmatch(r"[\W_]*(?:\w{1,3}\s)?", sentence[: mentions[0].start()]) is not None
        after = sentence[mentions[0].end() :]
        is_hidden = after[:1].isalnum() and not pattern_of(phrases.endings).match(after)  # a longer word
        rejected = is_hidden or any(map(pattern_of(phrases.rejected + phrases.joins).match, parts))
        if rejected or says_unknown(rest, phrases):
            return []
        if pattern_of(phrases.doubts).search(rest):
            return [_Statement(NO_ANSWER, _NAMED)]
        denied = pattern_of(phrases.negations).search(sentence) or _NOT_ANYWHERE.search(sentence)
        leads = begins and (is_first or not denied) and (len(places) == 1 or rest[:1] in (",", ";"))
        return [_Statement(place, _NAMED)] if leads or (self._is_alone and not denied) else []


def _verdict(line: str) -> bool | None:
    mentions = list(_MENTION.finditer(line))
    if len({_place(one[0]) for one in mentions}) != 1:
        return None
    begins = re.fullmatch(r"[\W_\d]*(?:option )?", line[: mentions[0].start()], re.IGNORECASE) is not None
    verdict = _VERDICT.match(line, mentions[-1].end()) if begins else None
    return True if _TICK.search(line) else None if verdict is None else verdict[1] is not None


def _place(mention: str) -> int:
    return ord(mention) & 0xFF
