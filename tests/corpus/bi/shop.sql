-- Dashboards over another schema: orders and their lines.
-- schema: tpch

-- case: a filter picker
SELECT "orders"."o_orderpriority" AS "o_orderpriority" FROM "public"."orders" "orders" GROUP BY 1 ORDER BY 1

-- case: a filter picker with a search
SELECT l_shipmode AS l_shipmode FROM public.lineitem WHERE l_shipmode ILIKE '%air%' GROUP BY l_shipmode ORDER BY l_shipmode LIMIT 1000

-- case: a filter picker of two columns
-- order: any
SELECT l_returnflag, l_linestatus FROM lineitem GROUP BY l_returnflag, l_linestatus
---- duckdb
SELECT * FROM (VALUES ('A'), ('N'), ('R')) a(l_returnflag) CROSS JOIN (VALUES ('F'), ('O')) b(l_linestatus)

-- case: a date picker
SELECT MIN(o_orderdate) AS min, MAX(o_orderdate) AS max FROM public.orders
---- duckdb
SELECT DATE '1992-01-01' AS min, DATE '1998-12-31' AS max

-- case: revenue by year
SELECT CAST(EXTRACT(YEAR FROM o_orderdate) AS INTEGER) AS year, SUM(o_totalprice) AS revenue, COUNT(*) AS orders FROM orders GROUP BY 1 ORDER BY 1

-- case: revenue by segment and priority
-- order: any
SELECT c.c_mktsegment, o.o_orderpriority, COUNT(*) AS n FROM orders o JOIN customer c ON c.c_custkey = o.o_custkey GROUP BY 1, 2

-- case: discounts in Looker's words
SELECT COALESCE(SUM(lineitem.l_extendedprice * (1 - lineitem.l_discount)), 0) AS "lineitem.revenue", COUNT(DISTINCT lineitem.l_orderkey) AS "orders.count"
FROM public.lineitem AS lineitem WHERE lineitem.l_shipdate >= DATE '1995-01-01' AND lineitem.l_shipdate < DATE '1996-01-01' FETCH NEXT 500 ROWS ONLY

-- case: late lines in Metabase's words
SELECT "public"."lineitem"."l_shipmode" AS "l_shipmode", SUM(CASE WHEN "public"."lineitem"."l_receiptdate" > "public"."lineitem"."l_commitdate" THEN 1 ELSE 0.0 END) AS "late"
FROM "public"."lineitem" GROUP BY "public"."lineitem"."l_shipmode" ORDER BY "public"."lineitem"."l_shipmode" ASC

-- case: months in Tableau's words
-- order: any
SELECT DATE_TRUNC('MONTH', CAST("orders"."o_orderdate" AS DATE)) AS "tmn:o_orderdate:ok", SUM("orders"."o_totalprice") AS "sum:o_totalprice:ok" FROM "public"."orders" "orders"
WHERE ("orders"."o_orderdate" >= DATE '1996-01-01' AND "orders"."o_orderdate" < DATE '1997-01-01') GROUP BY 1
---- duckdb
SELECT DATE_TRUNC('MONTH', o_orderdate)::TIMESTAMP AS m, SUM(o_totalprice) AS s FROM orders WHERE o_orderdate >= DATE '1996-01-01' AND o_orderdate < DATE '1997-01-01' GROUP BY 1

-- case: quantities in Power BI's words
-- order: any
select "_"."l_linestatus", "_"."a0" from (select "rows"."l_linestatus" as "l_linestatus", sum("rows"."l_quantity") as "a0" from (select "l_linestatus", "l_quantity" from "public"."lineitem" "$Table") "rows" group by "l_linestatus") "_" where not "_"."a0" is null limit 1000001

-- case: a preview
SELECT * FROM public.orders LIMIT 100
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT * FROM public.orders LIMIT 100
               ^
HINT:  Aggregate, for example: SELECT o_orderstatus, COUNT(*) FROM orders GROUP BY o_orderstatus. For rows like them: CREATE SYNTHETIC TABLE orders_like AS SELECT o_orderstatus, o_totalprice, o_orderdate, o_orderpriority FROM orders.
