"""The operator tree: what a query computes over private rows, whatever the SQL said and the engine speaks."""
