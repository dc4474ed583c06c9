"""Superset's configuration for the tests. It is read by Superset itself, in its own environment.

The lines on impersonation are those of docs/superset.md.
"""

import os
import re

HOME = os.environ["SUPERSET_HOME"]
SECRET_KEY = os.environ["SUPERSET_TEST_SECRET"]
SQLALCHEMY_DATABASE_URI = f"sqlite:///{HOME}/superset.db"
# Answers stay in Superset, too, for as long as it runs: what one user may have must not reach another from there.
DATA_CACHE_CONFIG = {"CACHE_TYPE": "SimpleCache", "CACHE_DEFAULT_TIMEOUT": 86400, "CACHE_KEY_PREFIX": "data_"}
FILTER_STATE_CACHE_CONFIG = {"CACHE_TYPE": "SimpleCache", "CACHE_DEFAULT_TIMEOUT": 86400}
EXPLORE_FORM_DATA_CACHE_CONFIG = {"CACHE_TYPE": "SimpleCache", "CACHE_DEFAULT_TIMEOUT": 86400}
# On loopback, over http.
TALISMAN_ENABLED = False
SESSION_COOKIE_SAMESITE = None
# The tests log in more often than a person does.
RATELIMIT_ENABLED = False
AUTH_RATE_LIMITED = False

FEATURE_FLAGS = {"CACHE_IMPERSONATION": True, "ESTIMATE_QUERY_COST": True}
DPSQL_HOST, SERVICE_ACCOUNT = "localhost", "superset"


def DB_CONNECTION_MUTATOR(uri, params, username, security_manager, source):
    if uri.host == DPSQL_HOST:
        if not username:
            raise PermissionError("nobody is logged in whom dpsql could charge")
        role = re.sub(r"([\s\\])", r"\\\1", username)  # one word in libpq's options
        params.setdefault("connect_args", {})["options"] = f"-c role={role}"
        uri = uri.set(username=SERVICE_ACCOUNT)
    return uri, params
