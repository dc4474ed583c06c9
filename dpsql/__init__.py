"""A SQL-rewriting differential-privacy proxy."""
