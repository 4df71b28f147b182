"""What the card of JBBQ says."""

from qabias.benchmarks.about import About
from qabias.building.licences import CLOSED

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
        "JBBQ (Yanaka et al. 2025) is BBQ for Japan, in Japanese, in five categories, read from the user's own copy."
    ),
    homepage="https://github.com/ynklab/JBBQ_data",
    paper="https://aclanthology.org/2025.gebnlp-1.1/",
    bibtex=_BIBTEX,
    making=(
        "The authors translated templates of BBQ, changed or left out those that do not hold in Japan, and "
        "wrote new ones. The qabias project reads the user's files as they are, names them by a digest, and "
        "computes the roles of the answers."
    ),
    licence=CLOSED,
    defects=(
        "The authors send the files to each user, who may not pass them on: this folder is for nobody else.",
        "The qabias project could check its rules for the target on none of the files; where they find none "
        "or two, the target is undefined.",
    ),
)
