"""`python -m leeway` is the `leeway` command."""

import os
import sys

from leeway.launcher import command

if __name__ == "__main__":
    program = command()
    os.execv(program, [program, *sys.argv[1:]])
