"""Makes the rooms of the tests importable: `from corpus.reader import Case`, `from support.shop import Silence`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
