"""`dpsql data changed`: the owner's act by which changed files become the next version."""

from __future__ import annotations

import argparse
import json

from dpsql.interfaces.dbapi.url import schema_path
from dpsql.interfaces.display.terminal import Screen
from dpsql.owner.administration import register_data_version


def run(args: argparse.Namespace, screen: Screen) -> None:
    version = register_data_version(schema_path(args.schema))
    message = f"the data as it is now is version {version}; open connections must be opened again"
    screen.print(json.dumps({"version": version}) if args.json else message)
