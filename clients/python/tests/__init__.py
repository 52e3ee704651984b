"""Tests of the client; run them with ``python3 -m unittest`` in clients/python."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
