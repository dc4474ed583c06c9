-- The least epsilon that keeps an error, as the noise that it makes.

-- case: one count within 5
-- set: max_error = 5
SELECT COUNT(*) FROM patients
---- privacy
rows: l1 1, l2² 1, linf 1; grid 1; gaussian 2.82057; rho 0.0628487, delta 0
loss: rho 0.0628487, delta 0

-- case: the same with Laplace noise
-- set: max_error = 5
-- set: noise = laplace
SELECT COUNT(*) FROM patients
---- privacy
rows: l1 1, l2² 1, linf 1; grid 1; laplace 1.85529; epsilon 0.539, rho 0.14526, delta 0
loss: epsilon 0.539, rho 0.14526, delta 0

-- case: with more confidence
-- set: max_error = 5
-- set: noise = laplace
-- set: confidence = 0.99
SELECT COUNT(*) FROM patients
---- privacy
rows: l1 1, l2² 1, linf 1; grid 1; laplace 1.21507; epsilon 0.823, rho 0.338664, delta 0
loss: epsilon 0.823, rho 0.338664, delta 0

-- case: every answer of a statement, in groups that are selected
-- set: max_error = 500
SELECT ward, COUNT(*), SUM(nights) FROM visits GROUP BY ward
---- privacy
selection selection_units: weighted Gaussian threshold, at most 4 keys, scale 298174, above 1776246; rho 0.024154, delta 9.99997e-09
c1_above, c1_below: l1 3848290697216, l2² 53876069761024, linf 7340032; grid 1/65536; gaussian 1.66978e+07; rho 0.096616, delta 0
loss: rho 0.12077, delta 9.99997e-09

-- case: options of the statement
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_error = 100, confidence = 0.9) HISTOGRAM(kind) FROM visits
---- privacy
rows: l1 1048576, l2² 274877906944, linf 524288; grid 1/65536; gaussian 3.98092e+06; rho 0.00867249, delta 0
loss: rho 0.00867249, delta 0

-- case: a pilot has the epsilon that holds
-- set: max_relative_error = 0.05
SELECT COUNT(*) FROM patients
---- privacy
rows: l1 1, l2² 1, linf 1; grid 1; gaussian 4.97677; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0
