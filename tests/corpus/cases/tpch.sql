-- Statements of ours that need what TPC-H's 22 queries need, by their numbers: other columns, constants and aims, over a schema of that shape.

-- schema: tpch

-- case: 1, totals and averages by ship mode
SELECT l_shipmode, l_linestatus, SUM(l_quantity) AS q, SUM(l_extendedprice * (1 + l_tax)) AS taxed, SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS due, AVG(l_discount) AS off, COUNT(*) AS n
FROM lineitem WHERE l_receiptdate <= DATE '1998-10-01' - INTERVAL '45' DAY GROUP BY l_shipmode, l_linestatus ORDER BY l_linestatus, l_shipmode

-- case: 2, parts at their highest cost in a region
SELECT p_partkey, p_brand, s_name, ps_supplycost FROM part, supplier, partsupp, nation, region
WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_container = 'LG PACK' AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'AMERICA'
  AND ps_supplycost = (SELECT MAX(ps_supplycost) FROM partsupp, supplier, nation, region
    WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'AMERICA')
ORDER BY p_partkey, s_name LIMIT 20

-- case: 3, the dearest open orders of machine builders
SELECT o_orderkey, o_clerk, SUM(l_extendedprice * l_discount) AS saved FROM customer, orders, lineitem
WHERE c_mktsegment = 'MACHINERY' AND c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < DATE '1996-02-01' AND l_shipdate > DATE '1996-02-01'
GROUP BY o_orderkey, o_clerk ORDER BY saved DESC LIMIT 5
---- error
NotPrivate 0A000: grouping by the privacy unit would return a row for each unit
LINE 3: GROUP BY o_orderkey, o_clerk ORDER BY saved DESC LIMIT 5
                 ^
DETAIL:  Each such group holds one unit, and no group of one may appear in an answer.
HINT:  Aggregate once more: SELECT COUNT(*), AVG(n) FROM (SELECT …, COUNT(*) AS n … GROUP BY …) AS t.

-- case: 3, what open orders of machine builders come to
SELECT COUNT(*) AS n, AVG(saved) AS mean FROM (
  SELECT o_orderkey, SUM(l_extendedprice * l_discount) AS saved FROM customer, orders, lineitem
  WHERE c_mktsegment = 'MACHINERY' AND c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < DATE '1996-02-01' AND l_shipdate > DATE '1996-02-01' GROUP BY o_orderkey) t

-- case: 4, states of orders with a line that was taken back
SELECT o_orderstatus, COUNT(*) AS n FROM orders WHERE o_orderdate >= DATE '1994-02-01' AND o_orderdate < DATE '1994-02-01' + INTERVAL '7' MONTH
  AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_returnflag = 'R') GROUP BY o_orderstatus ORDER BY o_orderstatus

-- case: 5, goods that stay in their country
SELECT n_name, SUM(l_quantity) AS q FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
  AND r_name = 'EUROPE' AND o_orderdate >= DATE '1995-01-01' AND o_orderdate < DATE '1995-01-01' + INTERVAL '2' YEAR GROUP BY n_name ORDER BY q DESC

-- case: 6, taxes of a quarter on large lines
SELECT SUM(l_extendedprice * l_tax) AS tax FROM lineitem
WHERE l_commitdate >= DATE '1995-04-01' AND l_commitdate < DATE '1995-04-01' + INTERVAL '3' MONTH AND l_tax BETWEEN 0.05 - 0.02 AND 0.05 + 0.02 AND l_quantity > 30

-- case: 8, the part of a country in what a region buys, by year
SELECT y, SUM(CASE WHEN source = 'FRANCE' THEN value ELSE 0 END) / SUM(value) AS share FROM (
  SELECT EXTRACT(YEAR FROM l_shipdate) AS y, l_extendedprice * (1 - l_discount) AS value, n2.n_name AS source FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
  WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey
    AND r_name = 'ASIA' AND s_nationkey = n2.n_nationkey AND l_shipdate BETWEEN DATE '1993-01-01' AND DATE '1995-12-31' AND p_container = 'SM BOX') x GROUP BY y ORDER BY y

-- case: 9, margins by brand and year
SELECT p_brand, EXTRACT(YEAR FROM o_orderdate) AS y, SUM(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) AS margin, AVG(ps_supplycost) AS cost
FROM part, lineitem, partsupp, orders WHERE ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND p_name LIKE '%rose%'
GROUP BY p_brand, y ORDER BY p_brand, y DESC

-- case: 10, customers who send back
SELECT c_custkey, c_phone, SUM(l_quantity) AS q, n_name FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1994-01-01' AND l_returnflag = 'R' AND c_nationkey = n_nationkey
GROUP BY c_custkey, c_phone, n_name ORDER BY q DESC LIMIT 5
---- error
NotPrivate 0A000: grouping by the privacy unit would return a row for each unit
LINE 3: GROUP BY c_custkey, c_phone, n_name ORDER BY q DESC LIMIT 5
                 ^
DETAIL:  Each such group holds one unit, and no group of one may appear in an answer.
HINT:  Aggregate once more: SELECT COUNT(*), AVG(n) FROM (SELECT …, COUNT(*) AS n … GROUP BY …) AS t.

-- case: 10, customers who send back, by their names
SELECT c_name, SUM(l_quantity) AS q FROM customer, orders, lineitem WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_returnflag = 'R' GROUP BY c_name ORDER BY q DESC LIMIT 5
---- error
NotPrivate 0A000: grouping by the privacy unit would return a row for each unit
LINE 1: SELECT c_name, SUM(l_quantity) AS q FROM customer, orders, lineitem WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_returnflag = 'R' GROUP BY c_name ORDER BY q DESC LIMIT 5
                                                                                                                                                                    ^
DETAIL:  Each such group holds one unit, and no group of one may appear in an answer.
HINT:  Aggregate once more: SELECT COUNT(*), AVG(n) FROM (SELECT …, COUNT(*) AS n … GROUP BY …) AS t.

-- case: 11, stock of a country that is much of all
SELECT ps_suppkey, SUM(ps_availqty) AS q FROM partsupp, supplier, nation WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'FRANCE' GROUP BY ps_suppkey
HAVING SUM(ps_availqty) > (SELECT SUM(ps_availqty) * 0.1 FROM partsupp, supplier, nation WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'FRANCE') ORDER BY q DESC, 1

-- case: 12, late lines by instruction, of early and late orders
SELECT l_shipinstruct, SUM(CASE WHEN o_orderstatus = 'F' OR o_orderstatus = 'P' THEN 1 ELSE 0 END) AS done, SUM(CASE WHEN o_orderstatus <> 'F' AND o_orderstatus <> 'P' THEN 1 ELSE 0 END) AS open
FROM orders, lineitem WHERE o_orderkey = l_orderkey AND l_shipinstruct IN ('NONE', 'COLLECT COD') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1995-03-01' GROUP BY l_shipinstruct ORDER BY 1

-- case: 13, customers by how many urgent orders they have
SELECT urgent, COUNT(*) AS n FROM (
  SELECT c_custkey, COUNT(o_orderkey) FROM customer LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_orderpriority = '1-URGENT' GROUP BY c_custkey) AS t (c_custkey, urgent)
GROUP BY urgent HAVING COUNT(*) > 8 ORDER BY n DESC, urgent DESC

-- case: 14, what a size has of a month's lines
SELECT 100.0 * SUM(CASE WHEN p_size < 5 THEN l_quantity ELSE 0 END) / SUM(l_quantity) AS share FROM lineitem, part WHERE l_partkey = p_partkey AND l_commitdate >= DATE '1996-05-01' AND l_commitdate < DATE '1996-05-01' + INTERVAL '1' MONTH

-- case: 15, the supplier of most lines
WITH sent (supplier, q) AS (SELECT l_suppkey, SUM(l_quantity) FROM lineitem WHERE l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1994-01-01' + INTERVAL '6' MONTH GROUP BY l_suppkey)
SELECT s_name, q FROM supplier, sent WHERE s_suppkey = supplier AND q = (SELECT MAX(q) FROM sent) ORDER BY s_name

-- case: 16, parts by how many suppliers without complaints they have
SELECT p_container, p_mfgr, COUNT(DISTINCT ps_suppkey) AS n FROM partsupp, part WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#12' AND p_type NOT LIKE '%TIN' AND p_size IN (2, 5, 6, 8, 10)
  AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Complaints%') GROUP BY p_container, p_mfgr ORDER BY n DESC, 1, 2

-- case: 17, small lines of a container
SELECT SUM(l_extendedprice) / 7.0 AS yearly, COUNT(*) AS n FROM lineitem, part WHERE p_partkey = l_partkey AND p_container = 'JUMBO JAR' AND l_quantity < (SELECT 0.3 * AVG(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)

-- case: 17, dear lines among those of the part that are sent by rail
SELECT COUNT(*) AS n FROM lineitem a JOIN part ON p_partkey = a.l_partkey WHERE a.l_extendedprice > (SELECT 1.5 * AVG(b.l_extendedprice) FROM lineitem b WHERE b.l_partkey = p_partkey AND b.l_shipmode = 'RAIL')

-- case: 18, large orders by name
SELECT c_name, o_orderkey, o_totalprice, SUM(l_quantity) FROM customer, orders, lineitem
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 250) AND c_custkey = o_custkey AND o_orderkey = l_orderkey GROUP BY c_name, o_orderkey, o_totalprice ORDER BY 3 DESC LIMIT 9
---- error
NotPrivate 0A000: grouping by the privacy unit would return a row for each unit
LINE 2: WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 250) AND c_custkey = o_custkey AND o_orderkey = l_orderkey GROUP BY c_name, o_orderkey, o_totalprice ORDER BY 3 DESC LIMIT 9
                                                                                                                                                                              ^
DETAIL:  Each such group holds one unit, and no group of one may appear in an answer.
HINT:  Aggregate once more: SELECT COUNT(*), AVG(n) FROM (SELECT …, COUNT(*) AS n … GROUP BY …) AS t.

-- case: 18, how many large orders
SELECT c_mktsegment, COUNT(DISTINCT o_custkey) AS customers, COUNT(*) AS orders, SUM(o_totalprice) AS worth FROM customer, orders
WHERE c_custkey = o_custkey AND o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 180) GROUP BY c_mktsegment ORDER BY 1

-- case: 19, lines by brand, size and mode
SELECT SUM(l_extendedprice * (1 - l_discount)) AS value, COUNT(*) AS n FROM lineitem, part
WHERE (p_partkey = l_partkey AND p_brand = 'Brand#34' AND p_container IN ('SM BOX', 'LG PACK') AND l_quantity BETWEEN 5 AND 25 AND p_size < 9 AND l_shipmode IN ('RAIL', 'TRUCK') AND l_shipinstruct = 'NONE')
  OR (p_partkey = l_partkey AND p_brand = 'Brand#45' AND p_container = 'JUMBO JAR' AND l_quantity > 20 AND p_size > 3 AND l_shipmode IN ('RAIL', 'TRUCK') AND l_shipinstruct = 'NONE')

-- case: 20, suppliers with more stock than half a year's orders
SELECT s_name, s_phone FROM supplier, nation WHERE s_suppkey IN (
    SELECT ps_suppkey FROM partsupp WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE '%mint')
      AND ps_availqty > (SELECT 0.7 * SUM(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND l_shipdate >= DATE '1995-01-01' AND l_shipdate < DATE '1995-01-01' + INTERVAL '6' MONTH))
  AND s_nationkey = n_nationkey AND n_name IN ('FRANCE', 'GERMANY') ORDER BY s_name

-- case: 21, suppliers who alone were late
SELECT s_name, COUNT(*) AS n FROM supplier, lineitem l1, orders, nation
WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderpriority < '4' AND l1.l_receiptdate > l1.l_commitdate + 10
  AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
  AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey AND l3.l_receiptdate > l3.l_commitdate + 10)
  AND s_nationkey = n_nationkey AND n_name = 'FRANCE' GROUP BY s_name ORDER BY n DESC, s_name LIMIT 10

-- case: 22, poor customers without orders by country code
SELECT code, COUNT(*) AS n, SUM(c_acctbal) AS balance FROM (
  SELECT SUBSTRING(c_phone FROM 1 FOR 2) AS code, c_acctbal FROM customer WHERE SUBSTRING(c_phone FROM 1 FOR 2) IN ('11', '12', '15', '20', '24', '33')
    AND c_acctbal < (SELECT AVG(c_acctbal) FROM customer WHERE c_acctbal > 0 AND SUBSTRING(c_phone FROM 1 FOR 2) IN ('11', '12', '15', '20', '24', '33'))
    AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS x GROUP BY code ORDER BY code
