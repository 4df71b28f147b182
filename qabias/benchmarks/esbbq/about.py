"""What the cards of EsBBQ and CaBBQ say."""

from qabias.benchmarks.about import About

REPOSITORY = "langtech-bsc/EsBBQ-CaBBQ"

_BIBTEX = """
@misc{ruizfernandez-etal-2025-esbbq,
  title = {{EsBBQ} and {CaBBQ}: The {Spanish} and {Catalan} bias benchmarks for question answering},
  author = {Ruiz-Fernández, Valle and Mina, Mario and Falcão, Júlia and Vasquez-Reina, Luis and Sallés, Anna and
            Gonzalez-Agirre, Aitor and Perez-de-Viñaspre, Olatz},
  year = {2025},
  eprint = {2507.11216},
  archivePrefix = {arXiv}
}
"""


_DEFECTS = {
    "es": (
        "Four rows of PhysicalAppearance (template 10) call themselves pro-stereo where their facts go against the "
        "stereotype; the roles here follow the groups of the people, not that column.",
    )
}
"""What is wrong with the rows of one language alone."""


def about_set(name: str, code: str, language: str) -> About:
    """What the card of one of the two sets says."""
    return About(
        name=name,
        codes=(code,),
        languages=f"{language} as used in Spain",
        society="Spain",
        authors="Ruiz-Fernández et al.",
        created="2025-07-15",
        summary=(
            f"{name} (Ruiz-Fernández et al. 2025) is BBQ adapted to {language} and to the social context of Spain: "
            "templates of BBQ that hold there, others changed, and new ones, in ten categories."
        ),
        homepage=f"https://github.com/{REPOSITORY}",
        paper="https://arxiv.org/abs/2507.11216",
        bibtex=_BIBTEX,
        making="The authors adapted templates of BBQ to Spain, wrote new ones, and filled them with words and names.",
        repository=REPOSITORY,
        defects=(
            'The released rows have the word "unknown" in place of the wording of the unknown answer, always last. One '
            "of the authors' nine wordings is drawn for every set by the seed, and the order of the answers too.",
            "There are about 2.1 disambiguated examples for each ambiguous one.",
            *_DEFECTS.get(code, ()),
        ),
    )
