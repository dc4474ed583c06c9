-- Statements that cannot be read.

-- case: a missing parenthesis
SELECT COUNT(* FROM visits
---- error
ERROR 42601 (InvalidSyntax):  syntax error at or near "FROM"
LINE 1: SELECT COUNT(* FROM visits
                       ^
HINT:  A ")" is missing.

-- case: on the second line
SELECT COUNT(*)
FROM visits
WHRE cost > 1
---- error
ERROR 42601 (InvalidSyntax):  syntax error at or near "cost"
LINE 3: WHRE cost > 1
             ^
HINT:  Perhaps you meant WHERE instead of WHRE.

-- case: nothing
  -- nothing here
---- error
ERROR 42601 (InvalidSyntax):  the statement is empty
HINT:  Write a SELECT, for example: SELECT COUNT(*) FROM visits

-- case: two statements
SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM patients
---- error
ERROR 42601 (InvalidSyntax):  one statement at a time
HINT:  Send each statement on its own.

-- case: an open quote
SELECT COUNT(*) FROM visits WHERE ward = 'a
---- error
ERROR 42601 (InvalidSyntax):  the statement ends within a quoted text, name or comment

-- case: something else than SELECT
DELETE FROM visits
---- error
ERROR 0A000 (Unsupported):  DELETE is not answered: data is read, never written
LINE 1: DELETE FROM visits
        ^
HINT:  Questions are answered here; the owner changes the data at its source, then registers it.

-- case: too few parameters
-- parameters: ["a"]
SELECT COUNT(*) FROM visits WHERE ward = ? AND cost > ?
---- error
ERROR 08P01 (ProgrammingError):  the statement has 2 placeholders, but 1 given
HINT:  A placeholder is written ? or $1, and each takes one value: IN (?, ?).

-- case: parentheses too deep
SELECT COUNT(*) FROM visits WHERE (((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((TRUE)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))
---- error
ERROR 54000 (LimitExceeded):  the statement is nested more than 200 deep
LINE 1: SELECT COUNT(*) FROM visits WHERE (((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((TRUE)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))
                                                                                                                                                                                                                                                  ^

-- case: SET without a value
SET epsilon
---- error
ERROR 42601 (InvalidSyntax):  SET takes a name and a value
HINT:  For example: SET epsilon = 0.5

-- case: %s
-- parameters: ["surgery"]
SELECT COUNT(*) FROM visits WHERE cost % 2 = 1 AND ward = %s
---- error
ERROR 42601 (InvalidSyntax):  a placeholder is written ?, or $1
LINE 1: SELECT COUNT(*) FROM visits WHERE cost % 2 = 1 AND ward = %s
                                                                  ^
HINT:  For example: execute("SELECT COUNT(*) FROM visits WHERE ward = ? AND cost > ?", ["surgery", 100]).

-- case: a named placeholder
SELECT COUNT(*) FROM visits WHERE cost::int > 5 AND ward = :ward
---- error
ERROR 42601 (InvalidSyntax):  a placeholder is written ?, or $1
LINE 1: SELECT COUNT(*) FROM visits WHERE cost::int > 5 AND ward = :ward
                                                                   ^
HINT:  For example: execute("SELECT COUNT(*) FROM visits WHERE ward = ? AND cost > ?", ["surgery", 100]).

-- case: a gap in the numbers of placeholders
-- parameters: ["surgery", 3]
SELECT COUNT(*) FROM visits WHERE ward = $1 AND nights > $3
---- error
ERROR 42601 (InvalidSyntax):  there is a $3, but no $2
LINE 1: SELECT COUNT(*) FROM visits WHERE ward = $1 AND nights > $3
                                                                 ^
HINT:  Number them $1, $2, … without gaps.

-- case: placeholders of two kinds
-- parameters: ["surgery", 3]
SELECT COUNT(*) FROM visits WHERE ward = ? AND nights > $2
---- error
ERROR 42601 (InvalidSyntax):  placeholders are written ? or $1, not both
LINE 1: SELECT COUNT(*) FROM visits WHERE ward = ? AND nights > $2
                                                                ^
HINT:  Write ? for each value in turn, or number all of them: $1, $2.
