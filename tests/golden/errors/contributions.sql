-- A unit may contribute any amount, and the owner sets no cap.

-- case: rows of a unit
-- schema: uncapped
SELECT COUNT(*) FROM clicks
---- error
ERROR 0A000 (UnboundedContribution):  a privacy unit may have any number of rows here, and the schema sets no norm for them
HINT:  The owner sets privacy.contributions.rows in the schema, the rows that one unit may count for.

-- case: groups of a unit
-- schema: uncapped
SELECT DISTINCT page FROM clicks
---- error
ERROR 0A000 (UnboundedContribution):  a privacy unit may reach any number of the groups asked for, and the schema sets no cap for them
HINT:  The owner sets privacy.contributions.groups in the schema, or declares the key's values.

-- case: units in unknown groups
-- schema: uncapped
SELECT page, COUNT(DISTINCT user_id) FROM clicks GROUP BY page
---- error
ERROR 0A000 (UnboundedContribution):  a privacy unit may be counted in any number of groups, and the schema sets no cap for them
HINT:  The owner sets privacy.contributions.rows in the schema, or declares the key's values.
