"""What the card of GG-BBQ says."""

from qabias.benchmarks.about import About

REPOSITORY = "shalakasatheesh/GG-BBQ"

_BIBTEX = """
@inproceedings{satheesh-etal-2025-gg,
  title = {{GG-BBQ}: {German} gender bias benchmark for question answering},
  author = {Satheesh, Shalaka and Klug, Katrin and Beckh, Katharina and Allende-Cid, Héctor and Houben, Sebastian and
            Hassan, Teena},
  booktitle = {Proceedings of the 6th Workshop on Gender Bias in Natural Language Processing},
  year = {2025},
  pages = {137--148}
}
"""

ABOUT = About(
    name="GG-BBQ",
    codes=("de",),
    languages="German",
    society="the United States, as far as its stereotypes of gender hold in Germany",
    authors="Satheesh et al.",
    created="2025-07-22",
    summary=(
        "GG-BBQ (Satheesh et al. 2025) is the part of BBQ about gender in German: `labels` calls people by words for "
        "their group, `names` by proper names."
    ),
    homepage=f"https://github.com/{REPOSITORY}",
    paper="https://aclanthology.org/2025.gebnlp-1.14/",
    bibtex=_BIBTEX,
    making=(
        "The authors translated BBQ's templates by machine, corrected them with a language expert, and filled them "
        "with words and names."
    ),
    repository=REPOSITORY,
    defects=(
        "As released, the right answer of a disambiguated question is the first for negative questions and the second "
        "for the others, and the unknown answer is the last. Answers are shuffled by the seed for every set.",
        "In 144 examples of `labels`, those of question 10, the two questions are exchanged: the negative one asks who "
        "can be trusted, and its right answer is the person who is not. They are kept as they are.",
        "In 220 of 484 lines of `labels` and 200 of 5,450 of `names` in each file, no tag of a person is one of the "
        "stereotyped groups. All are about trans people, and the person with the tag `non_binary` is the trans one.",
        "The rows do not name their template; it is found by its text. Two of 38 templates of `names` have no rows.",
        "Some answers end with a space or are misspelt.",
    ),
)
