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
ExplainCommand(sql=' SELECT COUNT(*)\nFROM visits', offset=7, json=False, given=())

-- case: a query is no command
-- SET is only a word here
SELECT COUNT(*) FROM visits
---- command
None

-- case: a threshold is declared by its number and its options
DECLARE busy THRESHOLD 1000 WITH (epsilon = 1, answers = 3)
---- command
DeclareMechanismCommand(kind='threshold', name='busy', options=(Option(name='threshold', value='1000', span=Span(start=23, end=27), place=None), Option(name='epsilon', value='1', span=Span(start=34, end=45), place=None), Option(name='answers', value='3', span=Span(start=47, end=58), place=None)), span=Span(start=8, end=12))

-- case: a question to a holdout, and what it is held against
ASK h SELECT SUM(cost) FROM visits WHERE ward = $1 AGAINST $2
---- command
SubmitQuery(name='h', question=NestedStatement(sql='SELECT SUM(cost) FROM visits WHERE ward = $1', offset=6, places=(0,)), against=AgainstValue(span=Span(start=51, end=61), text=None, place=1, query=None), sensitivity=None, json=False)
