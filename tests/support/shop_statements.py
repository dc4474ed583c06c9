"""Realistic statements over the shop of `tests.support.shop`: what every interface is asked."""

# ruff: noqa: E501
# Statements that mean the same in PostgreSQL, in DuckDB, and so here.
SAME = """\
SELECT COUNT(*) FROM orders
SELECT COUNT(*), COUNT(amount), COUNT(qty), SUM(amount), AVG(amount) FROM orders
SELECT COUNT(*) AS n, SUM(qty) AS total, AVG(qty) AS mean FROM orders
SELECT SUM(price), AVG(price) FROM orders
SELECT COUNT(DISTINCT uid) FROM orders
SELECT COUNT(DISTINCT uid), COUNT(*) FROM people
SELECT COUNT(1), COUNT('x'), COUNT(NULL) FROM orders
SELECT kind, COUNT(*) FROM orders GROUP BY kind
SELECT kind, COUNT(*), SUM(amount), AVG(qty), COUNT(DISTINCT uid) FROM orders GROUP BY kind ORDER BY kind
SELECT city, COUNT(*) FROM orders GROUP BY city ORDER BY city
SELECT city, kind, COUNT(*), SUM(price) FROM orders GROUP BY city, kind ORDER BY 1, 2
SELECT city AS c, COUNT(*) AS n FROM orders GROUP BY c ORDER BY n DESC, c LIMIT 3
SELECT kind, COUNT(*) FROM orders GROUP BY 1 ORDER BY 2 DESC, 1
SELECT kind, city, COUNT(*) FROM orders GROUP BY ALL ORDER BY ALL
SELECT paid, COUNT(*) FROM orders GROUP BY paid ORDER BY paid NULLS FIRST
SELECT region, COUNT(*), AVG(age) FROM people GROUP BY region ORDER BY region NULLS LAST
SELECT vip, region, COUNT(*) FROM people GROUP BY vip, region ORDER BY vip, region NULLS LAST
SELECT DISTINCT kind FROM orders ORDER BY kind
SELECT DISTINCT city FROM orders ORDER BY city
SELECT kind, COUNT(*) FROM orders WHERE amount > 100 GROUP BY kind ORDER BY kind
SELECT kind, COUNT(*) FROM orders WHERE amount BETWEEN 0 AND 99.75 AND qty <> 3 GROUP BY kind ORDER BY kind
SELECT COUNT(*) FROM orders WHERE city IN ('Oslo', 'Rome', 'nowhere')
SELECT COUNT(*) FROM orders WHERE city NOT IN ('Oslo', 'Rome')
SELECT city, COUNT(*) FROM orders WHERE city IN ('Oslo', 'Rome') GROUP BY city ORDER BY city
SELECT COUNT(*) FROM orders WHERE note LIKE 'gift%' OR note ILIKE 'GIFT%'
SELECT COUNT(*) FROM orders WHERE note LIKE 'a_b'
SELECT COUNT(*) FROM orders WHERE note IS NULL
SELECT COUNT(*) FROM orders WHERE note IS NOT NULL AND amount IS NOT NULL
SELECT COUNT(*) FROM orders WHERE NOT (amount > 100)
SELECT COUNT(*) FROM orders WHERE NOT (amount > 100 AND paid)
SELECT COUNT(*) FROM orders WHERE amount > 100 OR paid
SELECT COUNT(*) FROM orders WHERE paid IS TRUE
SELECT COUNT(*) FROM orders WHERE paid IS NOT TRUE
SELECT COUNT(*) FROM orders WHERE paid = FALSE
SELECT COUNT(*) FROM orders WHERE qty IN (1, 2, NULL)
SELECT COUNT(*) FROM orders WHERE qty NOT IN (1, 2, NULL)
SELECT COUNT(*) FROM orders WHERE price = 12.5 OR price >= 499.99
SELECT COUNT(*) FROM orders WHERE made >= '2022-01-01' AND made < '2023-01-01'
SELECT COUNT(*) FROM people WHERE joined BETWEEN '2021-01-01' AND '2021-12-31'
SELECT EXTRACT(year FROM made) AS y, COUNT(*) FROM orders GROUP BY y ORDER BY y
SELECT EXTRACT(month FROM made), SUM(amount) FROM orders GROUP BY 1 ORDER BY 1
SELECT EXTRACT(dow FROM made), EXTRACT(isodow FROM made), COUNT(*) FROM orders GROUP BY 1, 2 ORDER BY 1, 2
SELECT DATE_TRUNC('year', made), COUNT(*) FROM orders GROUP BY 1 ORDER BY 1
SELECT DATE_TRUNC('quarter', joined), COUNT(*) FROM people GROUP BY 1 ORDER BY 1
SELECT CASE WHEN amount < 0 THEN 'loss' WHEN amount < 500 THEN 'small' ELSE 'large' END AS size, COUNT(*) FROM orders GROUP BY size ORDER BY size
SELECT CASE kind WHEN 'web' THEN 'online' ELSE 'offline' END AS how, AVG(amount) FROM orders GROUP BY 1 ORDER BY 1
SELECT qty > 3 AS many, COUNT(*) FROM orders WHERE qty IS NOT NULL GROUP BY many ORDER BY many
SELECT qty % 3, COUNT(*) FROM orders WHERE qty >= 0 GROUP BY 1 ORDER BY 1
SELECT UPPER(city), COUNT(*) FROM orders GROUP BY 1 ORDER BY 1
SELECT LOWER(SUBSTRING(city, 1, 1)) AS initial, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1
SELECT LENGTH(city), COUNT(*) FROM orders GROUP BY 1 ORDER BY 1
SELECT COALESCE(note, 'none') AS n, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1
SELECT NULLIF(note, '') AS n, COUNT(*) FROM orders WHERE note <> '' GROUP BY 1 ORDER BY 1
SELECT city || '/' || kind AS place, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1
SELECT CAST(qty AS TEXT) AS q, COUNT(*) FROM orders WHERE qty BETWEEN 1 AND 3 GROUP BY 1 ORDER BY 1
SELECT SUM(amount * qty), AVG(amount + qty), SUM(-qty), SUM(ABS(qty)) FROM orders
SELECT SUM(CASE WHEN paid THEN amount ELSE 0 END), SUM(CASE WHEN paid THEN 1 ELSE 0 END) FROM orders
SELECT SUM(CASE WHEN paid THEN amount END), COUNT(CASE WHEN paid THEN 1 END) FROM orders
SELECT SUM(amount) FILTER (WHERE paid), COUNT(*) FILTER (WHERE qty > 3), AVG(qty) FILTER (WHERE NOT paid) FROM orders
SELECT kind, COUNT(*) FILTER (WHERE paid), COUNT(*) FILTER (WHERE paid IS NULL) FROM orders GROUP BY kind ORDER BY kind
SELECT SUM(COALESCE(qty, 0)), SUM(COALESCE(amount, 1)), COUNT(NULLIF(qty, 3)) FROM orders
SELECT SUM(GREATEST(qty, 0)), SUM(LEAST(qty, 5)), SUM(ROUND(amount)), SUM(FLOOR(amount)), SUM(CEIL(amount)) FROM orders
SELECT SUM(CLIP(amount, 0, 100)), AVG(CLIP(qty, 0, 5)) FROM orders
SELECT SUM(CAST(paid AS INTEGER)), SUM(CAST(qty AS DOUBLE) / 2) FROM orders
SELECT VAR_POP(amount), VAR_SAMP(amount), VARIANCE(qty), STDDEV(amount), STDDEV_POP(qty), STDDEV_SAMP(qty) FROM orders
SELECT COUNT(*), COUNT(amount), SUM(amount), AVG(amount), STDDEV(amount) FROM orders
SELECT kind, COUNT(*), VAR_SAMP(qty), SUM(qty), AVG(qty), COUNT(qty) FROM orders GROUP BY kind ORDER BY kind
SELECT STDDEV(amount) FILTER (WHERE paid), VAR_POP(qty) FILTER (WHERE kind = 'web') FROM orders
SELECT CORR(amount, amount + qty), REGR_SLOPE(amount, amount + qty), REGR_R2(amount + qty, amount) FROM orders
SELECT REGR_COUNT(amount, qty), REGR_AVGX(amount, qty), REGR_AVGY(amount, qty), REGR_SXX(amount, qty), REGR_SYY(amount, qty) FROM orders
SELECT REGR_COUNT(qty, amount), COUNT(*) FROM orders
SELECT COVAR_POP(qty, qty * 2), COVAR_SAMP(qty, 3 - qty), REGR_SXY(qty, qty), REGR_INTERCEPT(qty * 2 + 1, qty) FROM orders
SELECT kind, CORR(qty, qty * 2 - 1), COVAR_POP(qty, qty) FILTER (WHERE paid) FROM orders GROUP BY kind ORDER BY kind
SELECT COUNT(DISTINCT city), COUNT(DISTINCT qty), SUM(DISTINCT qty), AVG(DISTINCT qty), COUNT(DISTINCT note) FROM orders
SELECT SUM(DISTINCT amount), AVG(DISTINCT price), COUNT(DISTINCT made), COUNT(DISTINCT paid) FROM orders
SELECT kind, COUNT(DISTINCT city), COUNT(DISTINCT uid), COUNT(*) FROM orders GROUP BY kind ORDER BY kind
SELECT city, COUNT(DISTINCT kind), COUNT(DISTINCT qty) FROM orders GROUP BY city ORDER BY city
SELECT COUNT(DISTINCT city) FILTER (WHERE qty > 18), SUM(DISTINCT qty) FILTER (WHERE NOT paid) FROM orders
SELECT COUNT(DISTINCT uid) FILTER (WHERE qty > 18), COUNT(DISTINCT uid) FILTER (WHERE amount < 0), COUNT(DISTINCT uid) FROM orders
SELECT kind, COUNT(DISTINCT uid) FILTER (WHERE paid) FROM orders GROUP BY kind ORDER BY kind
SELECT COUNT(DISTINCT (city, kind)), COUNT(DISTINCT (city, qty)), COUNT(DISTINCT qty + 1) FROM orders
SELECT COUNT(DISTINCT region), COUNT(DISTINCT age), AVG(DISTINCT age), COUNT(DISTINCT joined) FROM people
SELECT BOOL_AND(paid), BOOL_OR(paid), BOOL_AND(qty >= -5), BOOL_OR(qty > 5), BOOL_OR(amount < -1000) FROM orders
SELECT kind, BOOL_OR(paid), BOOL_AND(paid) FILTER (WHERE paid) FROM orders GROUP BY kind ORDER BY kind
SELECT COUNT_IF(paid), COUNTIF(qty > 3), SUM(paid::int), AVG(paid::int), COUNT_IF(qty > 3) FILTER (WHERE paid) FROM orders
SELECT APPROX_COUNT_DISTINCT(kind), MEAN(amount) FROM orders
SELECT kind, SUM(amount) / COUNT(DISTINCT city) AS per_city, SQRT(VAR_POP(qty)) AS s FROM orders GROUP BY kind ORDER BY kind
SELECT kind, COUNT(*) FROM orders GROUP BY kind HAVING COUNT(*) > 700 ORDER BY kind
SELECT kind, AVG(amount) FROM orders GROUP BY kind HAVING SUM(qty) > 0 AND kind <> 'web' ORDER BY kind
SELECT city, COUNT(*) AS n FROM orders GROUP BY city ORDER BY n DESC, city OFFSET 2 LIMIT 2
SELECT kind, SUM(amount) / COUNT(*) AS mean, 2 * SUM(qty) + 1 AS odd FROM orders GROUP BY kind ORDER BY kind
SELECT kind, CASE WHEN COUNT(*) > 700 THEN 'many' ELSE 'few' END FROM orders GROUP BY kind ORDER BY kind
SELECT kind, SUM(amount), RANK() OVER (ORDER BY SUM(amount) DESC) AS place FROM orders GROUP BY kind ORDER BY place
SELECT kind, COUNT(*), SUM(COUNT(*)) OVER () AS whole, 1.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM orders GROUP BY kind ORDER BY kind
SELECT city, kind, COUNT(*), ROW_NUMBER() OVER (PARTITION BY city ORDER BY COUNT(*) DESC, kind) AS place FROM orders GROUP BY city, kind ORDER BY city, place
SELECT city, COUNT(*) AS n FROM orders GROUP BY city QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, city) <= 2 ORDER BY city
SELECT AVG(n), MAX(n), MIN(n) FROM (SELECT city, COUNT(*) AS n FROM orders GROUP BY city) AS per_city
SELECT COUNT(*) FROM (SELECT city, COUNT(*) AS n FROM orders GROUP BY city HAVING COUNT(*) > 340) AS big
SELECT * FROM (SELECT kind, COUNT(*) AS n FROM orders GROUP BY kind) AS t WHERE n > 0 ORDER BY kind
SELECT t.kind, t.n * 2 AS twice FROM (SELECT kind, COUNT(*) AS n FROM orders GROUP BY kind) AS t ORDER BY t.kind
WITH per AS (SELECT kind, SUM(amount) AS s FROM orders GROUP BY kind) SELECT a.kind, a.s, b.s FROM per a JOIN per b ON a.kind = b.kind ORDER BY 1
WITH big AS (SELECT * FROM orders WHERE amount > 500) SELECT kind, COUNT(*) FROM big GROUP BY kind ORDER BY kind
WITH a AS (SELECT uid, amount * 2 AS twice FROM orders), b AS (SELECT * FROM a WHERE twice > 10) SELECT COUNT(*), SUM(twice) FROM b
SELECT 'orders' AS what, COUNT(*) AS n FROM orders UNION ALL SELECT 'people', COUNT(*) FROM people ORDER BY what
SELECT kind FROM orders GROUP BY kind EXCEPT SELECT 'web' ORDER BY 1
SELECT (SELECT COUNT(*) FROM orders) AS o, (SELECT COUNT(*) FROM people) AS p
SELECT COUNT(*) - (SELECT COUNT(*) FROM people) AS more FROM orders
SELECT kind, COUNT(*) FROM orders GROUP BY kind HAVING COUNT(*) >= (SELECT COUNT(*) / 4.0 FROM orders) ORDER BY kind
SELECT COUNT(*), SUM(x) FROM (SELECT uid, amount AS x FROM orders WHERE qty > 0) AS q
SELECT s.k, AVG(s.x) FROM (SELECT kind AS k, amount + 1 AS x FROM orders) AS s GROUP BY s.k ORDER BY s.k
SELECT p.region, COUNT(*) FROM orders o JOIN people p ON o.uid = p.uid GROUP BY p.region ORDER BY p.region NULLS LAST
SELECT p.vip, SUM(o.amount), COUNT(DISTINCT o.uid) FROM orders o JOIN people p ON p.uid = o.uid WHERE o.qty > 0 GROUP BY p.vip ORDER BY 1
SELECT COUNT(*), COUNT(p.uid), COUNT(p.region) FROM orders o LEFT JOIN people p ON o.uid = p.uid
SELECT COUNT(*), COUNT(o.oid), SUM(o.qty) FROM people p LEFT JOIN orders o ON p.uid = o.uid AND o.amount > 900
SELECT uid % 2 = 0 AS even, COUNT(*) FROM orders GROUP BY even ORDER BY even
SELECT i.product, COUNT(*), AVG(i.weight) FROM items i GROUP BY i.product ORDER BY 1
SELECT i.product, o.kind, COUNT(*), SUM(i.weight) FROM items i JOIN orders o ON i.oid = o.oid GROUP BY 1, 2 ORDER BY 1, 2
SELECT p.vip, i.product, COUNT(*) FROM items i JOIN orders o ON i.oid = o.oid JOIN people p ON o.uid = p.uid GROUP BY 1, 2 ORDER BY 1, 2
SELECT COUNT(*) FROM items JOIN orders USING (oid) WHERE orders.paid
SELECT COUNT(*), SUM(a.qty) FROM orders a JOIN orders b ON a.uid = b.uid WHERE b.qty = 3
SELECT "kind", COUNT(*) AS "N" FROM "orders" GROUP BY "kind" ORDER BY "N", "kind"
SELECT KIND, count(*) FROM Orders GROUP BY Kind ORDER BY kind
SELECT o.* FROM (SELECT kind, COUNT(*) AS n FROM orders GROUP BY kind) AS o ORDER BY n, kind
SELECT COUNT(*) FROM orders WHERE FALSE
SELECT kind, COUNT(*) FROM orders WHERE amount > 5000 GROUP BY kind
SELECT COUNT(*) FROM orders WHERE amount + qty > 500 AND amount - qty < 800 AND qty * 2 > -3
SELECT COUNT(*) FROM orders WHERE amount / NULLIF(qty, 0) > 10
SELECT COUNT(*) FROM orders WHERE CASE WHEN qty > 3 THEN paid ELSE kind = 'web' END
SELECT ROUND(AVG(amount), 2), CAST(SUM(qty) AS DOUBLE) FROM orders
SELECT ROUND(amount, 1) AS r, COUNT(*) FROM orders WHERE amount BETWEEN 0 AND 1 GROUP BY 1 HAVING COUNT(*) > 1000
SELECT kind, SUM(amount) AS s FROM orders GROUP BY kind ORDER BY SUM(amount) DESC
SELECT city FROM orders GROUP BY city ORDER BY COUNT(*) DESC, city LIMIT 1""".splitlines()

# Statements whose meaning is PostgreSQL's, beside what DuckDB calls the same.
OTHERWISE = [
    ("SELECT SUM(qty / 2), COUNT(*) FILTER (WHERE qty / 2 = 1) FROM orders",
     "SELECT SUM(qty // 2), COUNT(*) FILTER (WHERE qty // 2 = 1) FROM orders"),
    ("SELECT COUNT(*) / 7 FROM orders", "SELECT COUNT(*) // 7 FROM orders"),
    ("SELECT qty // 4 AS q, COUNT(*) FROM orders WHERE qty >= 0 GROUP BY 1 ORDER BY 1",
     "SELECT qty // 4 AS q, COUNT(*) FROM orders WHERE qty >= 0 GROUP BY 1 ORDER BY 1"),
    ("SELECT SUM(qty) / COUNT(*) FROM orders", "SELECT SUM(qty) // COUNT(*) FROM orders"),
    ("SELECT kind, COUNT(*) FROM orders GROUP BY kind ORDER BY COUNT(*) DESC, kind DESC",
     "SELECT kind, COUNT(*) FROM orders GROUP BY kind ORDER BY COUNT(*) DESC, kind DESC"),
]  # fmt: skip
