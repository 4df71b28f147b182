"""`qabias verify-device`: does every scorer compute correctly and fast on this device?"""

from pathlib import Path
from typing import Annotated

import typer

from qabias.errors import QabiasError
from qabias.support.printable import echo
from qabias.support.suggest import need, unknown

FAILED = 1  # exit code for wrong results
SIZES = ("tiny", "small", "all")
"""Values of `--shapes`, as in `qabias.devices.cases`, whose import is too slow for `--help`."""


def verify_device(
    minutes: Annotated[float, typer.Option(help="Time limit in minutes.")] = 8,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps, xpu, ...")] = "auto",
    shapes: Annotated[str, typer.Option(help="Model sizes: tiny, small or all.")] = "all",
    output: Annotated[Path | None, typer.Option(help="Also write the results as JSON.")] = None,
) -> None:
    """Verify that models run correctly on this device, and time them.

    Exit code 0 if all results equal the reference and do not depend on the batch, else 1.
    """
    if not 0 < minutes < float("inf"):
        raise QabiasError(f"--minutes is {minutes}.", "Give minutes above 0, such as 8.")
    if shapes not in SIZES:
        raise unknown("size", shapes, SIZES, "--shapes")
    if output is not None and output.is_dir():
        raise QabiasError(f"--output {output}: is a folder.", f"Name a file, such as {output / 'device.json'}.")
    need("local", "verify-device")
    from tqdm import tqdm

    from qabias.devices import check
    from qabias.support.files import write_json

    def keep(so_far: check.Check) -> None:
        if output is not None:
            write_json(output, so_far.as_json(shapes, minutes))

    with tqdm(desc="verify-device", bar_format="{desc}: {elapsed} {postfix}", leave=False) as bar:
        result = check.check_device(device, shapes, 60 * minutes, bar.set_postfix_str, keep=keep)
    check.print_check(result)
    if output is not None:
        echo(f"figures: {output.resolve()}")
    raise typer.Exit(0 if result.is_right else FAILED)
