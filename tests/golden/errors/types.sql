-- Types that do not fit.

-- case: a comparison of number and text
SELECT COUNT(*) FROM visits WHERE cost > ward
---- error
ERROR 42804 (TypeMismatch):  comparison of double and text: the types do not fit together
LINE 1: SELECT COUNT(*) FROM visits WHERE cost > ward
                                          ^
HINT:  Write the literal in the column's type, or cast one side.

-- case: a text that is no number
SELECT COUNT(*) FROM visits WHERE cost > 'much'
---- error
ERROR 42804 (TypeMismatch):  this text is not a number
LINE 1: SELECT COUNT(*) FROM visits WHERE cost > 'much'
                                                 ^

-- case: a text that is no date
SELECT COUNT(*) FROM visits WHERE at > '2024-02-30'
---- error
ERROR 42804 (TypeMismatch):  this value cannot be read as timestamp
LINE 1: SELECT COUNT(*) FROM visits WHERE at > '2024-02-30'
                                               ^

-- case: a date and a number
SELECT COUNT(*) FROM visits WHERE at > 5
---- error
ERROR 42804 (TypeMismatch):  comparison of timestamp and bigint: the types do not fit together
LINE 1: SELECT COUNT(*) FROM visits WHERE at > 5
                                          ^
HINT:  Write the literal in the column's type, or cast one side.

-- case: a text that is no uuid
SELECT COUNT(*) FROM lab_tests WHERE sample = 'x'
---- error
ERROR 42804 (TypeMismatch):  this value cannot be read as uuid
LINE 1: SELECT COUNT(*) FROM lab_tests WHERE sample = 'x'
                                                      ^

-- case: a condition that is a number
SELECT COUNT(*) FROM visits WHERE cost
---- error
ERROR 42804 (TypeMismatch):  a condition must be boolean, not double
LINE 1: SELECT COUNT(*) FROM visits WHERE cost
                                          ^

-- case: a sum of text
SELECT SUM(ward) FROM visits
---- error
ERROR 42804 (TypeMismatch):  SUM() needs numbers, not text
LINE 1: SELECT SUM(ward) FROM visits
                   ^
HINT:  COUNT(ward) counts them, COUNT(DISTINCT ward) how many different ones there are.

-- case: arithmetic with text
SELECT SUM(cost + ward) FROM visits
---- error
ERROR 42804 (TypeMismatch):  arithmetic needs numbers, not text
LINE 1: SELECT SUM(cost + ward) FROM visits
                          ^

-- case: a remainder of doubles
SELECT SUM(cost % 2) FROM visits
---- error
ERROR 42804 (TypeMismatch):  % needs whole numbers
LINE 1: SELECT SUM(cost % 2) FROM visits
                   ^

-- case: branches of CASE
SELECT COUNT(CASE WHEN cost > 1 THEN ward ELSE score END) FROM visits
---- error
ERROR 42804 (TypeMismatch):  CASE of text and integer: the types do not fit together
LINE 1: SELECT COUNT(CASE WHEN cost > 1 THEN ward ELSE score END) FROM visits
                                             ^
HINT:  Write the literal in the column's type, or cast one side.

-- case: a function's argument
SELECT lower(cost), COUNT(*) FROM visits GROUP BY 1
---- error
ERROR 42804 (TypeMismatch):  lower does not take (double)
LINE 1: SELECT lower(cost), COUNT(*) FROM visits GROUP BY 1
               ^
HINT:  For example: lower(ward).

-- case: a cast that makes no sense
SELECT COUNT(CAST(at AS integer)) FROM visits
---- error
ERROR 42804 (TypeMismatch):  no cast from timestamp to integer
LINE 1: SELECT COUNT(CAST(at AS integer)) FROM visits
                          ^

-- case: a cast of a literal that fails
SELECT COUNT(*) FROM visits WHERE score = CAST('x' AS integer)
---- error
ERROR 42804 (TypeMismatch):  this text cannot be read as integer
LINE 1: SELECT COUNT(*) FROM visits WHERE score = CAST('x' AS integer)
                                                       ^

-- case: bounds the wrong way round
SELECT SUM(CLIP(score, 10, 0)) FROM visits
---- error
ERROR 42804 (TypeMismatch):  CLIP takes a number, a lower and an upper bound
LINE 1: SELECT SUM(CLIP(score, 10, 0)) FROM visits
                   ^

-- case: bounds without a whole number between them
SELECT SUM(CLIP(score, 0.2, 0.8)) FROM visits
---- error
ERROR 42804 (TypeMismatch):  no integer lies between these bounds
LINE 1: SELECT SUM(CLIP(score, 0.2, 0.8)) FROM visits
                   ^
