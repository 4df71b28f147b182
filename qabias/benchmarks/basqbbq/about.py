"""What the card of BasqBBQ says."""

from qabias.benchmarks.about import About

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
    society="the Basque Country, as far as BBQ's questions were adapted to it",
    authors="Saralegi and Zulaika",
    created="2025-01-19",
    summary="BasqBBQ (Saralegi and Zulaika, COLING 2025) is BBQ in Basque, in eight categories.",
    homepage="https://github.com/orai-nlp/BasqBBQ",
    paper="https://github.com/orai-nlp/BasqBBQ",
    bibtex=_BIBTEX,
    making="The authors translated BBQ to Basque and adapted it.",
    repository="orai-nlp/BasqBBQ",
    defects=(
        "The rows were published under a licence that forbids commercial use, and whatever is made of them is"
        " under the same licence.",
        "Some people lack their group tag; the words that name them are then compared with the stereotyped groups.",
        "The rows do not say whether people are told apart by names alone; all have the label type `label`.",
    ),
)
