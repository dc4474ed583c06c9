-- Statements besides SELECT, read from tokens.

-- case: set with =
SET epsilon = 0.5;
---- command
SetCommand(name='epsilon', value='0.5', local=False)

-- case: set with to, session and a quoted value
set session delta to '1e-9'
---- command
SetCommand(name='delta', value='1e-9', local=False)

-- case: set a dotted name
SET LOCAL contributions.rows = 8
---- command
SetCommand(name='contributions.rows', value='8', local=True)

-- case: reset one
RESET epsilon
---- command
ResetCommand(name='epsilon')

-- case: reset all
RESET ALL;
---- command
ResetCommand(name=None)

-- case: show a setting
SHOW contributions.groups
---- command
ShowCommand(name='contributions.groups', json=False)

-- case: show the budget, in any case
show Budget;
---- command
ShowCommand(name='budget', json=False)

-- case: show tables behind comments
/* a tool writes this */ -- and this
  SHOW TABLES
---- command
ShowCommand(name='tables', json=False)

-- case: describe, and its short form
DESC visits
---- command
DescribeCommand(table='visits')

-- case: explain keeps the statement's place
EXPLAIN SELECT COUNT(*)
FROM visits;
---- command
ExplainCommand(sql=' SELECT COUNT(*)\nFROM visits', offset=7, json=False)

-- case: a query is no command
-- SET is only a word here
SELECT COUNT(*) FROM visits
---- command
None
