"""Makes tests/support importable: `from support.shop import open_shop`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
