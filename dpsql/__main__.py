"""`python -m dpsql` is `dpsql`."""

from __future__ import annotations

import sys

from dpsql.interfaces.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
