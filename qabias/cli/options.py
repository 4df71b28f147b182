"""Options that several commands share."""

from typing import Annotated

import typer

Config = Annotated[str, typer.Option(help="Configuration of the dataset (see `qabias list`).")]
Source = Annotated[str, typer.Option(help="Source of the texts: bundled, official or release.")]
Fixes = Annotated[bool, typer.Option("--fixes", help="Mend the known defects of official or released texts.")]
Seed = Annotated[int, typer.Option(help="Seed of every random draw.")]
UpstreamDir = Annotated[
    str | None,
    typer.Option(envvar="QABIAS_UPSTREAM", help="Local mirror of the authors' published files.", show_default=False),
]
