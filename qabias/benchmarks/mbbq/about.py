"""What the card of MBBQ says."""

from qabias.benchmarks.about import About

_BIBTEX = """
@inproceedings{neplenbroek-etal-2024-mbbq,
  title = {{MBBQ}: A dataset for cross-lingual comparison of stereotypes in generative {LLMs}},
  author = {Neplenbroek, Vera and Bisazza, Arianna and Fernández, Raquel},
  booktitle = {Conference on Language Modeling},
  year = {2024},
  eprint = {2406.07243},
  archivePrefix = {arXiv}
}
"""

ABOUT = About(
    name="MBBQ",
    codes=("en", "nl", "es", "tr"),
    languages="English, Dutch, Spanish and Turkish",
    society="the societies of the four languages, as far as they hold the same stereotypes",
    authors="Neplenbroek et al.",
    created="2024-06-11",
    summary=(
        "MBBQ (Neplenbroek et al., COLM 2024) asks the same questions, of BBQ, in English, Dutch, Spanish and"
        " Turkish, about stereotypes that are held in all four languages, in six categories. A control set "
        "asks them with names that tell no group."
    ),
    homepage="https://github.com/Veranep/MBBQ",
    paper="https://arxiv.org/abs/2406.07243",
    bibtex=_BIBTEX,
    making=(
        "The authors chose templates of BBQ about stereotypes that are held in all four languages, and had "
        "them translated."
    ),
    repository="Veranep/MBBQ",
    defects=(
        "The authors state no licence.",
        "In Gender_identity 16 examples of each language, and 28 in Spanish, have no or two answers with the "
        "stereotyped group; their target is undefined, and bias scores leave them out.",
        "The released script, and what follows it, ignores whether a question is negative: a fully "
        "stereotyped model then scores 0. The scores of qabias do not.",
    ),
)
