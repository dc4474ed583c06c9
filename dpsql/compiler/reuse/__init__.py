"""Reuse of releases that an account has paid for: what a release holds, and what else can be derived from it.

Privacy: only stored releases are read, so everything here is post-processing and costs nothing (Dwork, Roth 2014,
Proposition 2.1). What is at stake is correctness: a derived cell means what a fresh one would, and is as accurate.
"""
