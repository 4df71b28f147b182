"""What the card of GG-BBQ says."""

from qabias.benchmarks.about import About

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
    society="German-speaking societies",
    authors="Satheesh et al.",
    created="2025-08-01",
    summary=(
        "GG-BBQ (Satheesh et al. 2025) is BBQ's category of gender in German, in two parts: people who are "
        "named by words for their group, and people who are named by proper names."
    ),
    homepage="https://github.com/shalakasatheesh/GG-BBQ",
    paper="https://aclanthology.org/2025.gebnlp-1.14/",
    bibtex=_BIBTEX,
    making="The authors translated the templates of BBQ about gender, corrected them by hand, and filled them.",
    repository="shalakasatheesh/GG-BBQ",
    defects=(
        "The unknown answer stands last in every released row, and among the names the right answer is always"
        " the first or the second by the kind of the question; the order of the answers of every set is drawn"
        " by the seed, unless the version says answers=released.",
        "In 72 lines of each file of labels, those of question 10, the negative and the non-negative question"
        " are exchanged. They are read as they are released.",
        "In templates about trans people the tags of people and groups have different names; a small table "
        "joins them. With it every target is defined, in 968 rows of labels and 10,900 of names.",
        "The rows do not name their template; it is found by its text. Two of 38 templates of names have no rows.",
    ),
)
