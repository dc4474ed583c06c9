"""`dpsql data changed`: the owner's act by which changed files become the next version."""

from __future__ import annotations

import argparse
import json

from dpsql.dbapi.address import schema_path
from dpsql.display.screen import Screen
from dpsql.owner.books import register_changed


def run(given: argparse.Namespace, screen: Screen) -> None:
    version = register_changed(schema_path(given.schema))
    told = f"the data as it is now is version {version}; open connections must be opened again"
    screen.print(json.dumps({"version": version}) if given.json else told)
