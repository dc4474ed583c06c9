-- A chain of stores: returns by a composite key, anti-joins, and public rows that are found by two columns.

-- schema: store

-- case: returns of sales by city
SELECT sh_city, COUNT(*) AS n, SUM(re_amount) AS amount FROM shopper, sales, returned
WHERE sh_id = sa_shopper AND sa_item = re_item AND sa_ticket = re_ticket GROUP BY sh_city

-- case: what is left of the sales
SELECT it_kind, SUM(sa_quantity - COALESCE(re_quantity, 0)) AS kept, SUM(CASE WHEN re_item IS NULL THEN 0 ELSE 1 END) AS returns
FROM sales LEFT JOIN returned ON re_ticket = sa_ticket AND re_item = sa_item JOIN item ON it_id = sa_item GROUP BY it_kind

-- case: returns alone
SELECT re_store, COUNT(*) AS n, AVG(re_amount) AS mean FROM returned GROUP BY re_store

-- case: sales that came back
SELECT COUNT(*) AS n FROM sales s WHERE EXISTS (SELECT 1 FROM returned r WHERE r.re_ticket = s.sa_ticket AND r.re_item = s.sa_item AND r.re_amount > 50)

-- case: sales that stayed
SELECT sa_store, SUM(sa_price) AS price FROM sales s
WHERE NOT EXISTS (SELECT 1 FROM returned r WHERE r.re_ticket = s.sa_ticket AND r.re_item = s.sa_item) GROUP BY sa_store

-- case: sales that came back, by a list of pairs
SELECT COUNT(*) AS n FROM sales WHERE (sa_ticket, sa_item) IN (SELECT re_ticket, re_item FROM returned WHERE re_quantity > 10)

-- case: returns through a sub-select with other names
SELECT COUNT(*) AS n, SUM(p) AS price FROM (SELECT sa_ticket AS t, sa_item AS i, sa_price AS p FROM sales WHERE sa_store < 4) x
JOIN returned ON re_ticket = t AND re_item = i

-- case: bought in the store, returned, and bought again on the web
SELECT it_kind, COUNT(*) AS n FROM sales, returned, web_lines, item
WHERE sa_ticket = re_ticket AND sa_item = re_item AND we_shopper = sa_shopper AND we_item = re_item AND it_id = sa_item GROUP BY it_kind

-- case: returns by the ticket alone
SELECT COUNT(*) FROM sales JOIN returned ON sa_ticket = re_ticket
---- error
NotPrivate 0A000: a join of private rows must equate their privacy units
LINE 1: SELECT COUNT(*) FROM sales JOIN returned ON sa_ticket = re_ticket
                                        ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join along the foreign key: ON sales.sa_item = returned.re_item AND sales.sa_ticket = returned.re_ticket.

-- case: a ticket of one sale and an item of another
SELECT COUNT(*) FROM sales a JOIN sales b ON a.sa_shopper = b.sa_shopper JOIN returned r ON r.re_ticket = a.sa_ticket AND r.re_item = b.sa_item
---- error
NotPrivate 0A000: a join of private rows must equate their privacy units
LINE 1: SELECT COUNT(*) FROM sales a JOIN sales b ON a.sa_shopper = b.sa_shopper JOIN returned r ON r.re_ticket = a.sa_ticket AND r.re_item = b.sa_item
                                                                                      ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join along the foreign key: ON a.sa_item = r.re_item AND a.sa_ticket = r.re_ticket.

-- case: days of sales and of returns
SELECT COUNT(*) AS n, AVG(re_day - sa_day) AS days FROM sales JOIN returned ON sa_ticket = re_ticket AND sa_item = re_item WHERE re_day - sa_day <= 30

-- case: items of which nothing was sold in quantity
SELECT it_kind, COUNT(*) FROM item LEFT JOIN sales ON sa_item = it_id AND sa_quantity > 95 WHERE sa_ticket IS NULL GROUP BY it_kind
---- error
Unsupported 0A000: the answer would depend on public rows that match no private row, which are not counted
LINE 1: SELECT it_kind, COUNT(*) FROM item LEFT JOIN sales ON sa_item = it_id AND sa_quantity > 95 WHERE sa_ticket IS NULL GROUP BY it_kind
                                                     ^
DETAIL:  They belong to no privacy unit, and a single one can match or leave many of them unmatched.
HINT:  Write JOIN instead of LEFT JOIN to ask about matched rows. Of the others, ask how many there are: count the matched ones by COUNT(DISTINCT item.it_id) of the JOIN, and subtract that from the public rows' own count.

-- case: items of which nothing was sold in quantity, by subtraction
SELECT (SELECT COUNT(*) FROM item) - COUNT(DISTINCT it_id) AS n FROM item JOIN sales ON sa_item = it_id AND sa_quantity > 95

-- case: prices above the mean of their kind
SELECT COUNT(*) AS n FROM sales JOIN item i ON sa_item = it_id WHERE it_price > (SELECT 1.2 * AVG(j.it_price) FROM item j WHERE j.it_kind = i.it_kind)

-- case: prices above the mean of their kind, by city
SELECT sh_city, COUNT(*) FROM shopper, sales, item i WHERE sh_id = sa_shopper AND sa_item = i.it_id AND i.it_price > (SELECT 1.2 * AVG(j.it_price) FROM item j WHERE j.it_kind = i.it_kind) GROUP BY 1

-- case: sales against a count of stock
SELECT COUNT(*) AS n FROM sales WHERE sa_quantity > (SELECT COUNT(*) FROM stock WHERE so_item = sa_item)

-- case: small sales against the mean of stock
SELECT SUM(sa_price) FROM sales WHERE sa_quantity < (SELECT 0.5 * AVG(so_onhand) FROM stock WHERE so_item = sa_item)

-- case: prices above the mean of their store
SELECT COUNT(*) AS n FROM sales s WHERE sa_price > (SELECT 1.2 * AVG(x.sa_price) FROM sales x WHERE x.sa_store = s.sa_store)

-- case: orders from several warehouses
SELECT COUNT(*) AS n FROM web_lines w WHERE EXISTS (SELECT 1 FROM web_lines v WHERE v.we_order = w.we_order AND v.we_warehouse <> w.we_warehouse)

-- case: orders of which nothing came back
SELECT COUNT(*) AS n FROM web_lines w WHERE NOT EXISTS (SELECT 1 FROM web_returned r WHERE r.wr_order = w.we_order)

-- case: lines of one order
SELECT COUNT(*) AS n FROM web_lines a JOIN web_lines b ON a.we_order = b.we_order WHERE a.we_warehouse < b.we_warehouse

-- case: orders of which something dear came back
SELECT COUNT(DISTINCT we_shopper), SUM(we_cost) FROM web_lines WHERE we_order IN (SELECT wr_order FROM web_returned WHERE wr_amount > 50)

-- case: lines of an order, on average
SELECT AVG(n) AS mean FROM (SELECT we_order, COUNT(*) AS n FROM web_lines GROUP BY we_order) t

-- case: a join in each branch of an OR
SELECT COUNT(*) AS n FROM sales, item WHERE (it_id = sa_item AND it_kind = 'toys' AND sa_quantity < 20) OR (sa_item = it_id AND it_kind = 'books' AND sa_quantity > 80)

-- case: the unit equated in each branch of an OR
SELECT COUNT(*) AS n FROM sales a, sales b WHERE (a.sa_shopper = b.sa_shopper AND a.sa_day < b.sa_day AND b.sa_store = 1) OR (b.sa_shopper = a.sa_shopper AND b.sa_store = 2 AND a.sa_store = 3)

-- case: stock by two columns that nobody declared unique
SELECT so_warehouse, SUM(we_quantity * 1.0) AS n FROM web_lines JOIN stock ON so_item = we_item AND so_warehouse = we_warehouse GROUP BY 1

-- case: a release that is joined by its key
SELECT COUNT(*) AS n FROM sales s JOIN (SELECT sa_store, AVG(sa_price) AS a FROM sales GROUP BY sa_store) x ON x.sa_store = s.sa_store WHERE s.sa_price > x.a

-- case: public groups that are joined by their key
SELECT COUNT(*) AS n FROM sales s JOIN (SELECT it_kind, AVG(it_price) AS a FROM item GROUP BY it_kind) x ON TRUE JOIN item i ON i.it_id = s.sa_item AND i.it_kind = x.it_kind WHERE i.it_price > x.a

-- case: returns of a ticket that no key determines
SELECT COUNT(*) FROM sales s WHERE EXISTS (SELECT 1 FROM returned r WHERE r.re_ticket = s.sa_ticket)
---- error
NotPrivate 0A000: a sub-select over private rows must equate its privacy unit with the outer one
LINE 1: SELECT COUNT(*) FROM sales s WHERE EXISTS (SELECT 1 FROM returned r WHERE r.re_ticket = s.sa_ticket)
                                                          ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  Join along the foreign key: add WHERE r.re_item = s.sa_item AND r.re_ticket = s.sa_ticket.

-- case: stores in which something dear was sold
SELECT DISTINCT st_id, st_name FROM store JOIN sales ON sa_store = st_id WHERE sa_quantity > 99 AND sa_price > 290

-- case: cities of the very young, of whom there are none
SELECT DISTINCT sh_city FROM shopper WHERE sh_born > 2009

-- case: cities by a condition on the key that is not worked out
SELECT DISTINCT sh_city FROM shopper WHERE sh_city LIKE 'B%' ORDER BY sh_city

-- case: how many items were sold in quantity
SELECT COUNT(*) AS n FROM (SELECT DISTINCT it_id FROM item JOIN sales ON sa_item = it_id WHERE sa_quantity > 99) t

-- case: sales in stores that sold something very dear
SELECT COUNT(*) AS n FROM sales WHERE sa_store IN (SELECT sa_store FROM sales WHERE sa_price > 299 AND sa_quantity > 97 GROUP BY sa_store)

-- case: stores that sold nothing very dear
SELECT st_id FROM store EXCEPT SELECT sa_store FROM sales WHERE sa_price > 299 AND sa_quantity > 97 GROUP BY sa_store ORDER BY st_id

-- case: stores in a list of sales
SELECT st_id FROM store WHERE st_id IN (SELECT sa_store FROM sales WHERE sa_price > 299)
---- error
NotPrivate 0A000: a sub-select over private rows must aggregate them
LINE 1: SELECT st_id FROM store WHERE st_id IN (SELECT sa_store FROM sales WHERE sa_price > 299)
                                                       ^
HINT:  Group in it, so that the values are released: SELECT ward FROM visits GROUP BY ward.

-- case: kinds and stores with subtotals that something dear has
SELECT sa_store, it_kind FROM sales JOIN item ON it_id = sa_item WHERE sa_price > 299 GROUP BY ROLLUP (sa_store, it_kind)

-- case: price and profit as rows
SELECT v.k, COUNT(v.x) AS n, SUM(v.x) AS total FROM sales CROSS JOIN LATERAL (VALUES ('price', sa_price), ('profit', sa_profit)) AS v(k, x) GROUP BY v.k ORDER BY v.k

-- case: price and profit as rows, of which one is filtered
SELECT COUNT(*) AS n, SUM(v.x * v.w) AS total FROM shopper, sales, LATERAL (VALUES (sa_price, 1), (sa_profit, 2), (10, 3)) AS v(x, w) WHERE sh_id = sa_shopper AND v.x > 20 AND sh_city = 'Oslo'

-- case: each shopper once for each of three numbers
SELECT k, COUNT(*) AS n FROM shopper CROSS JOIN (VALUES (1), (2), (3)) AS v(k) WHERE sh_born % 4 < k GROUP BY k ORDER BY k

-- case: each shopper once for each number of a list
SELECT COUNT(*) AS n FROM shopper, unnest([1, 2, 3]) AS u(k) WHERE sh_born % 4 < k
