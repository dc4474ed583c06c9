"""Plant known privacy bugs, one at a time, in a copy of the package; each must make a test fail.

    make mutants                         all of them
    python -m tests.mutants clip         those with "clip" in their name

Prints a table; exits 1 if a mutant survives, if its code is no longer there, or if the tests fail without any.
"""

import argparse
import sys

from tests.mutants import MUTANTS
from tests.mutants.runner import choose_mutants, run_mutants


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m tests.mutants", description="Plant privacy bugs; each must be found.")
    parser.add_argument("words", nargs="*", metavar="WORDS", help="only the bugs with one of these in their name")
    words = parser.parse_args(arguments).words
    for word in words:
        if not choose_mutants(MUTANTS, [word]):
            parser.error(f'no bug has "{word}" in its name')
    return run_mutants(MUTANTS, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
