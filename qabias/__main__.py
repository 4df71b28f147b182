"""`python -m qabias` is the command `qabias`."""

from qabias.cli import main

main()
