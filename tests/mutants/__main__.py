"""Plant known privacy bugs, one at a time, in a copy of the package; each must make a test fail.

    make mutants                         all of them
    python -m tests.mutants clip         those with "clip" in their name

Prints a table; exits 1 if a mutant survives, if its code is no longer there, or if the tests fail without any.
"""

import sys

from tests.mutants import MUTANTS
from tests.mutants.runner import run_mutants

if __name__ == "__main__":
    sys.exit(run_mutants(MUTANTS, sys.argv[1:]))
