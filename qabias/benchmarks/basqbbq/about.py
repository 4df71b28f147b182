"""What the card of BasqBBQ says."""

from qabias.benchmarks.about import About

REPOSITORY = "orai-nlp/BasqBBQ"

_BIBTEX = """
@inproceedings{saralegi-zulaika-2025-basqbbq,
  title = {{BasqBBQ}: A {QA} benchmark for assessing social biases in {LLMs} for {Basque}, a low-resource language},
  author = {Saralegi, Xabier and Zulaika, Muitze},
  booktitle = {Proceedings of the 31st International Conference on Computational Linguistics},
  year = {2025}
}
"""

ABOUT = About(
    name="BasqBBQ",
    codes=("eu",),
    languages="Basque",
    society="the Basque Country",
    authors="Saralegi and Zulaika",
    created="2025-01-19",
    summary=(
        "BasqBBQ (Saralegi and Zulaika 2025) is BBQ in Basque, in eight categories, with names and some groups, such "
        "as nationalities, changed."
    ),
    homepage=f"https://github.com/{REPOSITORY}",
    paper=f"https://github.com/{REPOSITORY}",
    bibtex=_BIBTEX,
    making="The authors translated templates of BBQ, adapted them, and filled them with words and names.",
    repository=REPOSITORY,
    defects=(
        "A few people lack their group tag; the words that name them are then compared with the stereotyped groups.",
        "The rows do not say whether people are told apart by names alone, so that all have the label type `label`.",
    ),
)
