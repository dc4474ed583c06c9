"""The scalar functions that may touch private rows: one record each, and no other function may (law 3)."""
