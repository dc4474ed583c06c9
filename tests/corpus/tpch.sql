-- A few thousand rows with TPC-H's columns and value sets; what its queries look for is there.
CREATE TABLE region AS SELECT i::INTEGER AS r_regionkey, ['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'][i + 1] AS r_name,
  'a part of the world' AS r_comment FROM range(5) t(i);
CREATE TABLE nation AS SELECT i::INTEGER AS n_nationkey,
  ['ALGERIA', 'ARGENTINA', 'BRAZIL', 'CANADA', 'EGYPT', 'ETHIOPIA', 'FRANCE', 'GERMANY', 'INDIA', 'INDONESIA', 'IRAN', 'IRAQ', 'JAPAN',
   'JORDAN', 'KENYA', 'MOROCCO', 'MOZAMBIQUE', 'PERU', 'CHINA', 'ROMANIA', 'SAUDI ARABIA', 'VIETNAM', 'RUSSIA', 'UNITED KINGDOM',
   'UNITED STATES'][i + 1] AS n_name,
  [0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1][i + 1]::INTEGER AS n_regionkey, 'a nation' AS n_comment
FROM range(25) t(i);
CREATE TABLE supplier AS SELECT (i + 1)::INTEGER AS s_suppkey, 'Supplier#' || lpad((i + 1)::VARCHAR, 9, '0') AS s_name,
  'street ' || mix(i, 1, 90) AS s_address, [6, 7, 20, 3, 2, 7, 6, 20, 3, 24][i % 10 + 1]::INTEGER AS s_nationkey,
  (10 + [6, 7, 20, 3, 2, 7, 6, 20, 3, 24][i % 10 + 1]) || '-555-' || (1000 + i) AS s_phone,
  (mix(i, 2, 1100000) / 100 - 1000)::DECIMAL(12, 2) AS s_acctbal,
  CASE WHEN mix(i, 3, 9) = 0 THEN 'Customer said: Complaints' ELSE 'fine goods' END AS s_comment
FROM range(20) t(i);
CREATE TABLE part AS SELECT (i + 1)::INTEGER AS p_partkey,
  ['green', 'forest', 'almond', 'blue', 'ivory', 'green'][i % 6 + 1] || ' ' || ['lace', 'mint', 'rose'][i % 3 + 1] AS p_name,
  'Manufacturer#' || (1 + i % 5) AS p_mfgr, ['Brand#12', 'Brand#23', 'Brand#34', 'Brand#45'][i % 4 + 1] AS p_brand,
  CASE WHEN i % 5 = 0 THEN 'ECONOMY ANODIZED STEEL' ELSE
    ['STANDARD', 'SMALL', 'MEDIUM', 'LARGE', 'ECONOMY', 'PROMO'][mix(i, 4, 6)::INTEGER + 1] || ' ' ||
    ['ANODIZED', 'BURNISHED', 'PLATED', 'POLISHED', 'BRUSHED'][mix(i, 5, 5)::INTEGER + 1] || ' ' ||
    ['TIN', 'NICKEL', 'BRASS', 'STEEL', 'COPPER'][mix(i, 6, 5)::INTEGER + 1] END AS p_type,
  (1 + mix(i, 7, 15))::INTEGER AS p_size,
  CASE i % 4 WHEN 0 THEN 'SM BOX' WHEN 1 THEN 'MED BOX' WHEN 2 THEN 'LG PACK' ELSE 'JUMBO JAR' END AS p_container,
  (900 + mix(i, 8, 100000) / 100)::DECIMAL(12, 2) AS p_retailprice, 'a part' AS p_comment
FROM range(60) t(i);
CREATE TABLE partsupp AS SELECT (p + 1)::INTEGER AS ps_partkey, ((p + s * 5) % 20 + 1)::INTEGER AS ps_suppkey,
  mix(p * 4 + s, 9, 400)::INTEGER AS ps_availqty, (1 + mix(p * 4 + s, 10, 99900) / 100)::DECIMAL(12, 2) AS ps_supplycost, 'ready' AS ps_comment
FROM range(60) t(p), range(4) u(s);

CREATE TABLE customer AS SELECT (i + 1)::INTEGER AS c_custkey, 'Customer#' || lpad((i + 1)::VARCHAR, 9, '0') AS c_name,
  'lane ' || mix(i, 20, 99) AS c_address, mix(i, 21, 25)::INTEGER AS c_nationkey,
  (10 + mix(i, 21, 25)) || '-' || (100 + mix(i, 22, 900)) || '-555' AS c_phone,
  (mix(i, 23, 1100000) / 100 - 999.99)::DECIMAL(12, 2) AS c_acctbal,
  ['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY'][mix(i, 24, 5)::INTEGER + 1] AS c_mktsegment, 'a buyer' AS c_comment
FROM range(600) t(i);
-- As in TPC-H, every third customer has no orders.
CREATE TABLE orders AS SELECT (i + 1)::INTEGER AS o_orderkey, (mix(i, 30, 200) * 3 + 1 + mix(i, 31, 2))::INTEGER AS o_custkey,
  ['F', 'O', 'P'][CASE WHEN mix(i, 32, 40) < 20 THEN 1 WHEN mix(i, 32, 40) < 38 THEN 2 ELSE 3 END] AS o_orderstatus,
  (1000 + mix(i, 33, 40000000) / 100)::DECIMAL(12, 2) AS o_totalprice, DATE '1992-01-01' + mix(i, 34, 2405)::INTEGER AS o_orderdate,
  ['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'][mix(i, 35, 5)::INTEGER + 1] AS o_orderpriority,
  'Clerk#' || mix(i, 36, 10) AS o_clerk, 0::INTEGER AS o_shippriority,
  CASE WHEN mix(i, 37, 30) = 0 THEN 'these special little requests' ELSE 'as usual' END AS o_comment
FROM range(5000) t(i);
CREATE TABLE lineitem AS
WITH lines AS (SELECT o_orderkey, o_orderdate, n, o_orderkey * 8 + n AS i FROM orders, range(7) t(n) WHERE n <= mix(o_orderkey, 40, 7)),
dated AS (SELECT *, (mix(i, 41, 60) + 1)::INTEGER AS partkey, o_orderdate + (1 + mix(i, 42, 121))::INTEGER AS shipped FROM lines)
SELECT o_orderkey AS l_orderkey, partkey AS l_partkey, ((partkey - 1 + mix(i, 43, 4) * 5) % 20 + 1)::INTEGER AS l_suppkey,
  (n + 1)::INTEGER AS l_linenumber, (1 + mix(i, 44, 50))::DECIMAL(12, 2) AS l_quantity,
  ((1 + mix(i, 44, 50)) * (900 + mix(i, 45, 100000) / 100))::DECIMAL(12, 2) AS l_extendedprice,
  (mix(i, 46, 11) / 100)::DECIMAL(4, 2) AS l_discount, (mix(i, 47, 9) / 100)::DECIMAL(4, 2) AS l_tax,
  CASE WHEN shipped > DATE '1995-06-17' THEN 'N' WHEN mix(i, 48, 2) = 0 THEN 'R' ELSE 'A' END AS l_returnflag,
  CASE WHEN shipped > DATE '1995-06-17' THEN 'O' ELSE 'F' END AS l_linestatus,
  shipped AS l_shipdate, o_orderdate + (30 + mix(i, 49, 61))::INTEGER AS l_commitdate,
  shipped + (1 + mix(i, 50, 30))::INTEGER AS l_receiptdate,
  ['COLLECT COD', 'DELIVER IN PERSON', 'NONE', 'TAKE BACK RETURN'][mix(i, 51, 4)::INTEGER + 1] AS l_shipinstruct,
  ['AIR', 'FOB', 'MAIL', 'RAIL', 'REG AIR', 'SHIP', 'TRUCK'][mix(i, 52, 7)::INTEGER + 1] AS l_shipmode, 'a line' AS l_comment
FROM dated;
