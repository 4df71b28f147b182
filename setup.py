"""The packages of the wheel; all else is in `setup.cfg`.

A dataset or metric folder is a repository of the Hub. It lies at the top of the checkout and travels inside the wheel
as a package of `qabias.share`.
"""

from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
SHARED = {
    f"qabias.share.{'.'.join(path.parent.relative_to(ROOT).parts)}": str(path.parent.relative_to(ROOT))
    for pattern in ("*_dataset/__init__.py", "metrics/*/__init__.py")
    for path in sorted(ROOT.glob(pattern))
}

setup(
    packages=[*find_packages(str(ROOT), include=["qabias", "qabias.*"]), *SHARED],
    package_dir={"qabias": "qabias", **SHARED},
)
