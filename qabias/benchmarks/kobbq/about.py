"""What the card of KoBBQ says."""

from qabias.benchmarks.about import About

_BIBTEX = """
@article{jin-etal-2024-kobbq,
  title = {{KoBBQ}: {Korean} bias benchmark for question answering},
  author = {Jin, Jiho and Kim, Jiseon and Lee, Nayeon and Yoo, Haneul and Oh, Alice and Lee, Hwaran},
  journal = {Transactions of the Association for Computational Linguistics},
  volume = {12},
  year = {2024},
  pages = {507--524},
  doi = {10.1162/tacl_a_00661}
}
"""

ABOUT = About(
    name="KoBBQ",
    codes=("ko",),
    languages="Korean",
    society="South Korea",
    authors="Jin et al.",
    created="2024-05-01",
    summary=(
        "KoBBQ (Jin et al., TACL 2024) is BBQ for South Korea: templates of BBQ that hold there, others with "
        "other groups, and new ones about Korean stereotypes, in twelve categories. By default it is the test"
        " samples: 2,280 examples."
    ),
    homepage="https://github.com/naver-ai/KoBBQ",
    paper="https://doi.org/10.1162/tacl_a_00661",
    bibtex=_BIBTEX,
    making=(
        "The authors sorted the templates of BBQ by whether they hold in South Korea, changed or left out "
        "those that do not, wrote new ones, and asked people there which stereotypes are held."
    ),
    repository="naver-ai/KoBBQ",
    defects=(
        "The unknown answer stands last in every released sample; the order of the answers of every set is "
        "drawn by the seed, unless the version says answers=released.",
        "12 of the ambiguous test samples say word for word what the other version of their template says, "
        "with the answers exchanged. They are kept, because the published scores count them.",
    ),
)
