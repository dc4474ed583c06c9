-- Settings out of their range, or past the owner's.

-- case: no such setting
SET search_path = public
---- error
ERROR 42704 (InvalidParameter):  there is no setting "search_path"
HINT:  Settings: epsilon, delta, contributions.rows, contributions.groups, noise, nonnegative, derive, max_error, max_relative_error, confidence, ranges, mechanism, proposal, integer_division, overshoot, empty_groups.

-- case: an epsilon of zero
SET epsilon = 0
---- error
ERROR 22023 (InvalidParameter):  epsilon must be above 0 and at most 1000000
HINT:  For example: SET epsilon = 0.5

-- case: a negative epsilon
SET epsilon = -1
---- error
ERROR 22023 (InvalidParameter):  epsilon must be above 0 and at most 1000000
HINT:  For example: SET epsilon = 0.5

-- case: an epsilon that is not finite
SET epsilon = inf
---- error
ERROR 22023 (InvalidParameter):  epsilon must be a number, not "inf"

-- case: an epsilon that is no number
SET epsilon = much
---- error
ERROR 22023 (InvalidParameter):  epsilon must be a number, not "much"

-- case: a delta of one
SET delta = 1
---- error
ERROR 22023 (InvalidParameter):  delta must be at least 0 and below 1
HINT:  For example: SET delta = 1e-9

-- case: more rows than the owner allows
SET contributions.rows = 9
---- error
ERROR 22023 (InvalidParameter):  contributions.rows cannot be raised above the owner's 8

-- case: no rows
SET contributions.rows = 0
---- error
ERROR 22023 (InvalidParameter):  contributions.rows must be a whole number of at least 1

-- case: half a group
SET contributions.groups = 1.5
---- error
ERROR 22023 (InvalidParameter):  contributions.groups must be a whole number of at least 1

-- case: another noise
SET noise = cauchy
---- error
ERROR 22023 (InvalidParameter):  noise must be laplace, gaussian or auto, not "cauchy"

-- case: a switch
SET nonnegative = maybe
---- error
ERROR 22023 (InvalidParameter):  nonnegative must be on or off, not "maybe"

-- case: RESET of nothing
RESET quux
---- error
ERROR 42704 (InvalidParameter):  there is no setting "quux"
HINT:  Settings: epsilon, delta, contributions.rows, contributions.groups, noise, nonnegative, derive, max_error, max_relative_error, confidence, ranges, mechanism, proposal, integer_division, overshoot, empty_groups.

-- case: no such integer division
SET integer_division = maybe
---- error
ERROR 22023 (InvalidParameter):  integer_division must be refuse or allow, not "maybe"

-- case: an overshoot above one
SET overshoot = 2
---- error
ERROR 22023 (InvalidParameter):  overshoot must be at least 0.000001 and at most 1
HINT:  For example: SET overshoot = 0.05
