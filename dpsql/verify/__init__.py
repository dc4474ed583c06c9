"""Checking the claims: random statements on neighboring databases, and a statistical audit of the noise.

Law: this package never sees the owner's rows. It takes a schema, makes databases of its own, and runs on them what an
analyst's statement would run. So anyone may run it, anywhere, and its report may be published.
"""
