"""`python -m dpsql` is `dpsql`."""

import sys

from dpsql.cli import main

if __name__ == "__main__":
    sys.exit(main())
