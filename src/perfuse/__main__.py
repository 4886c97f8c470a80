"""`python -m perfuse` is `perfuse`."""

from perfuse.cli import main

main()
