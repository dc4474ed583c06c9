"""What the owner declares: tables, units, bounds and budgets."""
