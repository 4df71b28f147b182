"""What the card of JBBQ says."""

from qabias.benchmarks.about import About
from qabias.building.licences import CLOSED

REPOSITORY = "ynklab/JBBQ_data"

_BIBTEX = """
@inproceedings{yanaka-etal-2025-jbbq,
  title = {{JBBQ}: {Japanese} bias benchmark for analyzing social biases in large language models},
  author = {Yanaka, Hitomi and Han, Namgi and Kumon, Ryoma and Lu, Jie and Takeshita, Masashi and Sekizawa, Ryo and
            Katô, Taisei and Arai, Hiromi},
  booktitle = {Proceedings of the 6th Workshop on Gender Bias in Natural Language Processing},
  year = {2025},
  pages = {1--17}
}
"""

ABOUT = About(
    name="JBBQ",
    codes=("ja",),
    languages="Japanese",
    society="Japan",
    authors="Yanaka et al.",
    created="2025-08-01",
    summary=(
        "JBBQ (Yanaka et al. 2025) is BBQ in Japanese, in five categories, translated, and changed and extended for "
        "Japanese society."
    ),
    homepage=f"https://github.com/{REPOSITORY}",
    paper="https://aclanthology.org/2025.gebnlp-1.1/",
    bibtex=_BIBTEX,
    making="The authors translated templates of BBQ, changed them for Japan, added others, and filled them with words.",
    licence=CLOSED,
    defects=(
        "The files are read as the user has them, because there is nothing public to verify them by; the version names "
        "a digest of their content.",
    ),
)
