"""Verify that models run correctly on this device, and time them: `python -m lab.devices --minutes 8`.

Exit status 0 if all results equal the reference and do not depend on the batch, else 1.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.options import explained
from qabias.errors import QabiasError
from qabias.support.printable import echo
from qabias.support.suggest import need

FAILED = 1  # exit status for wrong results
SIZES = ("tiny", "small", "all")
"""Values of `--shapes`, as in `lab.devices.cases`, whose import is too slow for `--help`."""


def main(given: Sequence[str] | None = None) -> int:
    """Check the device and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=8, help="time limit in minutes [8]")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, mps, xpu, ... [auto]")
    parser.add_argument("--shapes", default="all", choices=SIZES, help="model sizes [all]")
    parser.add_argument("--output", type=Path, help="also write the results as JSON")
    options = parser.parse_args(given)
    with explained():
        return _check(options.minutes, options.device, options.shapes, options.output)


def _check(minutes: float, device: str, shapes: str, output: Path | None) -> int:
    if not 0 < minutes < float("inf"):
        raise QabiasError(f"--minutes is {minutes}.", "Give minutes above 0, such as 8.")
    if output is not None and output.is_dir():
        raise QabiasError(f"--output {output}: is a folder.", f"Name a file, such as {output / 'device.json'}.")
    need("local", "lab.devices")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as `qabias` does, before torch is imported
    from tqdm import tqdm

    from lab.devices import check
    from qabias.support.files import write_json

    def keep(so_far: check.Check) -> None:
        if output is not None:
            write_json(output, so_far.as_json(shapes, minutes))

    with tqdm(desc="devices", bar_format="{desc}: {elapsed} {postfix}", leave=False) as bar:
        result = check.check_device(device, shapes, 60 * minutes, bar.set_postfix_str, keep=keep)
    check.print_check(result)
    if output is not None:
        echo(f"figures: {output.resolve()}")
    return 0 if result.is_right else FAILED


if __name__ == "__main__":
    sys.exit(main())
