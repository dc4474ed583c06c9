-- A unit may contribute any amount, the owner sets no cap, and none can be chosen: scores are compared.

-- case: rows of a unit
-- schema: uncapped
SELECT PRIVATE_ARGMAX(page, COUNT(*)) FROM clicks
---- error
ERROR 0A000 (UnboundedContribution):  a privacy unit may have any number of rows here, and the schema sets no norm for them
HINT:  The owner sets privacy.contributions.rows in the schema, or the analyst SET contributions.rows.
