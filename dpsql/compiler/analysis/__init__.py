"""Facts about a plan: domains, units, sensitivities, its canonical form."""
