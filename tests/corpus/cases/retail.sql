-- Statements of ours that need what TPC-DS's 99 queries need, by their numbers: other columns, constants and aims, over a schema of that shape.

-- schema: retail

-- case: 1, customers who return more than is usual in a state
WITH back AS (
  SELECT sr_customer_sk AS who, s_state AS state, SUM(sr_return_amt) AS amount
  FROM store_returns JOIN store ON s_store_sk = sr_store_sk JOIN date_dim ON d_date_sk = sr_returned_date_sk WHERE d_year = 2020 GROUP BY sr_customer_sk, s_state)
SELECT c_customer_id FROM back a JOIN customer ON c_customer_sk = a.who
WHERE a.amount > (SELECT AVG(b.amount) * 1.5 FROM back b WHERE b.state = a.state) ORDER BY 1 LIMIT 50
---- error
NotPrivate 0A000: this would return single private rows
LINE 4: SELECT c_customer_id FROM back a JOIN customer ON c_customer_sk = a.who
               ^
HINT:  Aggregate, for example: SELECT COUNT(*) FROM customer.

-- case: 1, how many return more than is usual in a state
WITH back AS (
  SELECT ss_customer_sk AS who, s_state AS state, SUM(sr_return_amt) AS amount
  FROM store_returns JOIN store_sales ON ss_item_sk = sr_item_sk AND ss_ticket_number = sr_ticket_number JOIN store ON s_store_sk = sr_store_sk GROUP BY ss_customer_sk, s_state)
SELECT state, COUNT(*) AS n FROM back a WHERE a.amount > (SELECT AVG(b.amount) * 1.5 FROM back b WHERE b.state = a.state) GROUP BY state ORDER BY state

-- case: 2, weekdays of two channels against the year before
WITH both_ AS (
  SELECT ws_sold_date_sk AS day, ws_net_paid AS paid FROM web_sales UNION ALL SELECT cs_sold_date_sk, cs_net_paid FROM catalog_sales),
weeks AS (
  SELECT d_week_seq AS week, SUM(CASE WHEN d_day_name = 'Saturday' THEN paid END) AS sat, SUM(CASE WHEN d_day_name = 'Sunday' THEN paid END) AS sun
  FROM both_ JOIN date_dim ON d_date_sk = day GROUP BY d_week_seq)
SELECT a.week, ROUND(a.sat / NULLIF(b.sat, 0), 2) AS sat, ROUND(a.sun / NULLIF(b.sun, 0), 2) AS sun
FROM weeks a, weeks b WHERE b.week = a.week + 52 AND a.week IN (SELECT d_week_seq FROM date_dim WHERE d_year = 2019 AND d_moy BETWEEN 2 AND 5) ORDER BY a.week

-- case: 4, customers whose catalog grows faster than their stores
WITH yearly AS (
  SELECT c_customer_id AS id, d_year AS year, SUM(ss_net_paid) AS total, 's' AS channel FROM customer, store_sales, date_dim
  WHERE c_customer_sk = ss_customer_sk AND d_date_sk = ss_sold_date_sk GROUP BY c_customer_id, d_year
  UNION ALL
  SELECT c_customer_id, d_year, SUM(cs_net_paid), 'c' FROM customer, catalog_sales, date_dim
  WHERE c_customer_sk = cs_bill_customer_sk AND d_date_sk = cs_sold_date_sk GROUP BY c_customer_id, d_year)
SELECT s1.id FROM yearly s1, yearly s2, yearly c1, yearly c2
WHERE s1.id = s2.id AND s1.id = c1.id AND s1.id = c2.id AND s1.channel = 's' AND s2.channel = 's' AND c1.channel = 'c' AND c2.channel = 'c'
  AND s1.year = 2019 AND s2.year = 2020 AND c1.year = 2019 AND c2.year = 2020 AND s1.total > 0 AND c1.total > 0 AND c2.total / c1.total > s2.total / s1.total
ORDER BY 1 LIMIT 20
---- error
NotPrivate 0A000: this would return single private rows
LINE 7: SELECT s1.id FROM yearly s1, yearly s2, yearly c1, yearly c2
               ^
HINT:  Aggregate, for example: SELECT COUNT(*) FROM customer.

-- case: 4, how many customers' catalog grows faster than their stores
WITH yearly AS (
  SELECT ss_customer_sk AS id, d_year AS year, SUM(ss_net_paid) AS total, 's' AS channel FROM store_sales, date_dim WHERE d_date_sk = ss_sold_date_sk GROUP BY ss_customer_sk, d_year
  UNION ALL
  SELECT cs_bill_customer_sk, d_year, SUM(cs_net_paid), 'c' FROM catalog_sales, date_dim WHERE d_date_sk = cs_sold_date_sk GROUP BY cs_bill_customer_sk, d_year)
SELECT COUNT(*) AS n FROM yearly s1, yearly s2, yearly c1, yearly c2
WHERE s1.id = s2.id AND s1.id = c1.id AND s1.id = c2.id AND s1.channel = 's' AND s2.channel = 's' AND c1.channel = 'c' AND c2.channel = 'c'
  AND s1.year = 2019 AND s2.year = 2020 AND c1.year = 2019 AND c2.year = 2020 AND s1.total > 0 AND c1.total > 0 AND c2.total / c1.total > s2.total / s1.total

-- case: 5, sales and returns of two channels with subtotals
WITH shops AS (
  SELECT s_store_name AS place, SUM(paid) AS paid, SUM(back) AS back FROM (
    SELECT ss_store_sk AS store, ss_sold_date_sk AS day, ss_net_paid AS paid, 0::DECIMAL(7, 2) AS back FROM store_sales
    UNION ALL SELECT sr_store_sk, sr_returned_date_sk, 0::DECIMAL(7, 2), sr_return_amt FROM store_returns) x, store, date_dim
  WHERE x.store = s_store_sk AND x.day = d_date_sk AND d_date BETWEEN DATE '2020-03-01' AND DATE '2020-03-31' GROUP BY s_store_name),
web AS (
  SELECT web_name AS place, SUM(paid) AS paid, SUM(back) AS back FROM (
    SELECT ws_web_site_sk AS site, ws_sold_date_sk AS day, ws_net_paid AS paid, 0::DECIMAL(7, 2) AS back FROM web_sales
    UNION ALL SELECT ws_web_site_sk, wr_returned_date_sk, 0::DECIMAL(7, 2), wr_return_amt
    FROM web_returns LEFT JOIN web_sales ON wr_item_sk = ws_item_sk AND wr_order_number = ws_order_number) x, web_site, date_dim
  WHERE x.site = web_site_sk AND x.day = d_date_sk AND d_date BETWEEN DATE '2020-03-01' AND DATE '2020-03-31' GROUP BY web_name)
SELECT channel, place, SUM(paid) AS paid, SUM(back) AS back
FROM (SELECT 'store' AS channel, * FROM shops UNION ALL SELECT 'web', * FROM web) y GROUP BY ROLLUP (channel, place) ORDER BY channel NULLS LAST, place NULLS LAST

-- case: 6, states of those who buy what is dear in its category
SELECT a.ca_state AS state, COUNT(*) AS n FROM customer_address a, customer c, store_sales s, date_dim d, item i
WHERE a.ca_address_sk = c.c_current_addr_sk AND c.c_customer_sk = s.ss_customer_sk AND s.ss_sold_date_sk = d.d_date_sk AND s.ss_item_sk = i.i_item_sk
  AND d.d_month_seq = (SELECT DISTINCT d_month_seq FROM date_dim WHERE d_year = 2020 AND d_moy = 4)
  AND i.i_wholesale_cost > 1.3 * (SELECT AVG(j.i_wholesale_cost) FROM item j WHERE j.i_category = i.i_category)
GROUP BY a.ca_state HAVING COUNT(*) >= 5 ORDER BY n, state

-- case: 7, averages of what singles bought without an advertisement
SELECT i_item_id, AVG(ss_quantity) AS q, AVG(ss_list_price) AS list, AVG(ss_coupon_amt) AS coupon FROM store_sales, customer_demographics, date_dim, item, promotion
WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND ss_cdemo_sk = cd_demo_sk AND ss_promo_sk = p_promo_sk AND cd_gender = 'F' AND cd_marital_status = 'S'
  AND (p_channel_tv = 'N' OR p_channel_email = 'N') AND d_year = 2019 GROUP BY i_item_id ORDER BY i_item_id

-- case: 8, stores near where many preferred customers live
SELECT s_store_name, SUM(ss_net_profit) AS profit FROM store_sales, date_dim, store,
  (SELECT zip FROM (
     SELECT SUBSTR(ca_zip, 1, 3) AS zip FROM customer_address WHERE SUBSTR(ca_zip, 1, 3) IN ('100', '102', '104', '109', '113', '126', '141', '150')
     INTERSECT
     SELECT SUBSTR(zip, 1, 3) FROM (SELECT ca_zip AS zip, COUNT(*) AS n FROM customer_address, customer
       WHERE ca_address_sk = c_current_addr_sk AND c_preferred_cust_flag = 'Y' GROUP BY ca_zip HAVING COUNT(*) > 4) a) b) v
WHERE ss_store_sk = s_store_sk AND ss_sold_date_sk = d_date_sk AND d_qoy = 1 AND d_year = 2020 AND SUBSTR(s_zip, 1, 3) = v.zip GROUP BY s_store_name ORDER BY s_store_name

-- case: 9, one of two averages by a count
SELECT CASE WHEN (SELECT COUNT(*) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 30) > 2000
    THEN (SELECT AVG(ss_list_price) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 30) ELSE (SELECT AVG(ss_net_paid) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 30) END AS low,
  CASE WHEN (SELECT COUNT(*) FROM store_sales WHERE ss_quantity BETWEEN 31 AND 60) > 99999
    THEN (SELECT AVG(ss_list_price) FROM store_sales WHERE ss_quantity BETWEEN 31 AND 60) ELSE (SELECT AVG(ss_net_paid) FROM store_sales WHERE ss_quantity BETWEEN 31 AND 60) END AS middle
FROM reason WHERE r_reason_sk = 2

-- case: 10, demographics of those who buy in a store and anywhere else
SELECT cd_gender, cd_education_status, COUNT(*) AS n FROM customer c, customer_address ca, customer_demographics
WHERE c.c_current_addr_sk = ca.ca_address_sk AND ca_county IN ('Knox', 'Waldo', 'Kane') AND cd_demo_sk = c.c_current_cdemo_sk
  AND EXISTS (SELECT * FROM store_sales, date_dim WHERE c.c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2020 AND d_moy BETWEEN 1 AND 6)
  AND (EXISTS (SELECT * FROM web_sales, date_dim WHERE c.c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk AND d_year = 2020 AND d_moy BETWEEN 1 AND 6)
    OR EXISTS (SELECT * FROM catalog_sales, date_dim WHERE c.c_customer_sk = cs_bill_customer_sk AND cs_sold_date_sk = d_date_sk AND d_year = 2020 AND d_moy BETWEEN 1 AND 6))
GROUP BY cd_gender, cd_education_status ORDER BY cd_gender, cd_education_status

-- case: 10, those to whom something is shipped
SELECT COUNT(*) AS n FROM customer c WHERE EXISTS (SELECT * FROM catalog_sales WHERE c.c_customer_sk = cs_ship_customer_sk AND cs_quantity > 90)
---- error
NotPrivate 0A000: a sub-select over private rows must equate its privacy unit with the outer one
LINE 1: SELECT COUNT(*) AS n FROM customer c WHERE EXISTS (SELECT * FROM catalog_sales WHERE c.c_customer_sk = cs_ship_customer_sk AND cs_quantity > 90)
                                                                  ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  "catalog_sales.cs_ship_customer_sk" is not the privacy unit: a row of "catalog_sales" belongs to that of "cs_bill_customer_sk", whomever else it names. In the sub-select, add WHERE catalog_sales.cs_bill_customer_sk = c.c_customer_sk.

-- case: 11, names of those whose web grows faster
WITH yearly AS (
  SELECT c_customer_id AS id, c_first_name AS name, d_year AS year, SUM(ss_list_price - ss_ext_discount_amt) AS total, 's' AS channel
  FROM customer, store_sales, date_dim WHERE c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk GROUP BY c_customer_id, c_first_name, d_year
  UNION ALL
  SELECT c_customer_id, c_first_name, d_year, SUM(ws_list_price - ws_ext_discount_amt), 'w'
  FROM customer, web_sales, date_dim WHERE c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk GROUP BY c_customer_id, c_first_name, d_year)
SELECT s.id, s.name FROM yearly s JOIN yearly w ON w.id = s.id WHERE s.channel = 's' AND w.channel = 'w' AND s.year = 2020 AND w.year = 2020 AND w.total > s.total ORDER BY s.id LIMIT 10
---- error
NotPrivate 0A000: this would return single private rows
LINE 7: SELECT s.id, s.name FROM yearly s JOIN yearly w ON w.id = s.id WHERE s.channel = 's' AND w.channel = 'w' AND s.year = 2020 AND w.year = 2020 AND w.total > s.total ORDER BY s.id LIMIT 10
               ^
HINT:  Aggregate, for example: SELECT c_first_name, COUNT(*) FROM customer GROUP BY c_first_name.

-- case: 12, what an item has of the web sales of its class
SELECT i_item_id, i_category, i_class, SUM(ws_net_paid) AS paid, SUM(ws_net_paid) * 100 / SUM(SUM(ws_net_paid)) OVER (PARTITION BY i_category, i_class) AS share
FROM web_sales, item, date_dim WHERE ws_item_sk = i_item_sk AND i_category IN ('Books', 'Shoes') AND ws_sold_date_sk = d_date_sk AND d_date BETWEEN DATE '2020-02-01' AND DATE '2020-05-31'
GROUP BY i_item_id, i_category, i_class HAVING SUM(ws_net_paid) > 0 ORDER BY i_category, i_class, i_item_id

-- case: 13, averages by demographics or by address
SELECT AVG(ss_quantity) AS q, AVG(ss_net_paid) AS paid, SUM(ss_wholesale_cost) AS cost FROM store_sales, store, customer_demographics, household_demographics, customer_address, date_dim
WHERE s_store_sk = ss_store_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2020
  AND ((ss_hdemo_sk = hd_demo_sk AND cd_demo_sk = ss_cdemo_sk AND cd_marital_status = 'M' AND hd_dep_count < 3)
    OR (ss_hdemo_sk = hd_demo_sk AND cd_demo_sk = ss_cdemo_sk AND cd_marital_status = 'S' AND hd_dep_count = 1))
  AND ((ss_addr_sk = ca_address_sk AND ca_country = 'United States' AND ca_state IN ('AK', 'ME') AND ss_net_profit > 0)
    OR (ss_addr_sk = ca_address_sk AND ca_country = 'United States' AND ca_state IN ('UT', 'VT') AND ss_net_profit < 5000))

-- case: 14, items that sell in every channel, and what they bring
WITH kinds AS (
  SELECT i_category AS category, i_class AS class FROM store_sales, item WHERE ss_item_sk = i_item_sk GROUP BY 1, 2
  INTERSECT SELECT i_category, i_class FROM catalog_sales, item WHERE cs_item_sk = i_item_sk GROUP BY 1, 2),
chosen AS (SELECT i_item_sk AS sk FROM item, kinds WHERE i_category = category AND i_class = class AND i_color = 'plum'),
mean AS (SELECT AVG(q * p) AS average FROM (SELECT ss_quantity AS q, ss_list_price AS p FROM store_sales UNION ALL SELECT cs_quantity, cs_list_price FROM catalog_sales) x)
SELECT channel, i_category, SUM(sales) AS sales, SUM(n) AS n FROM (
  SELECT 'store' AS channel, i_category, SUM(ss_quantity * ss_list_price) AS sales, COUNT(*) AS n FROM store_sales, item
  WHERE ss_item_sk IN (SELECT sk FROM chosen) AND ss_item_sk = i_item_sk GROUP BY i_category HAVING SUM(ss_quantity * ss_list_price) > (SELECT average FROM mean)
  UNION ALL
  SELECT 'catalog', i_category, SUM(cs_quantity * cs_list_price), COUNT(*) FROM catalog_sales, item
  WHERE cs_item_sk IN (SELECT sk FROM chosen) AND cs_item_sk = i_item_sk GROUP BY i_category HAVING SUM(cs_quantity * cs_list_price) > (SELECT average FROM mean)) y
GROUP BY ROLLUP (channel, i_category) ORDER BY channel NULLS LAST, i_category NULLS LAST

-- case: 14, items that three channels share
SELECT COUNT(*) AS n FROM (SELECT ss_item_sk FROM store_sales INTERSECT SELECT cs_item_sk FROM catalog_sales INTERSECT SELECT ws_item_sk FROM web_sales) x
---- error
NotPrivate 0A000: INTERSECT of private rows needs the privacy unit among the columns
LINE 1: SELECT COUNT(*) AS n FROM (SELECT ss_item_sk FROM store_sales INTERSECT SELECT cs_item_sk FROM catalog_sales INTERSECT SELECT ws_item_sk FROM web_sales) x
                                          ^
DETAIL:  Equal rows of two units would become one.
HINT:  Add the unit's column in the same place on both sides, or write SELECT DISTINCT on both sides, to compare what groups there are.

-- case: 14, what customers buy again in another channel
SELECT COUNT(*) AS n FROM (SELECT ss_customer_sk, ss_item_sk FROM store_sales INTERSECT SELECT cs_bill_customer_sk, cs_item_sk FROM catalog_sales) x

-- case: 15, catalog by zip of far or dear orders
SELECT ca_zip, SUM(cs_net_paid) AS paid FROM catalog_sales, customer, customer_address, date_dim
WHERE cs_bill_customer_sk = c_customer_sk AND c_current_addr_sk = ca_address_sk AND (SUBSTR(ca_zip, 1, 3) IN ('100', '111', '125') OR ca_state IN ('VT') OR cs_sales_price > 150)
  AND cs_sold_date_sk = d_date_sk AND d_qoy = 1 AND d_year = 2020 GROUP BY ca_zip ORDER BY ca_zip

-- case: 16, orders from two warehouses of which nothing came back
SELECT COUNT(DISTINCT cs_order_number) AS orders, SUM(cs_ext_ship_cost) AS ship, SUM(cs_net_profit) AS profit FROM catalog_sales cs1, date_dim, customer_address, call_center
WHERE d_date BETWEEN DATE '2019-06-01' AND DATE '2021-06-01' AND cs1.cs_ship_date_sk = d_date_sk AND cs1.cs_ship_addr_sk = ca_address_sk AND ca_state IN ('UT', 'ME')
  AND cs1.cs_call_center_sk = cc_call_center_sk AND cc_county IN ('Knox', 'Kane')
  AND EXISTS (SELECT * FROM catalog_sales cs2 WHERE cs1.cs_order_number = cs2.cs_order_number AND cs1.cs_warehouse_sk <> cs2.cs_warehouse_sk)
  AND NOT EXISTS (SELECT * FROM catalog_returns cr1 WHERE cs1.cs_order_number = cr1.cr_order_number)

-- case: 17, quantities sold, returned, and bought again
SELECT i_category, s_state, COUNT(ss_quantity) AS n, AVG(sr_return_quantity) AS mean, STDDEV_SAMP(ss_quantity) AS deviation, STDDEV_SAMP(ss_quantity) / AVG(ss_quantity) AS cov, AVG(cs_quantity) AS again
FROM store_sales, store_returns, catalog_sales, date_dim d1, date_dim d2, date_dim d3, store, item
WHERE d1.d_quarter_name <> '2020Q4' AND d1.d_date_sk = ss_sold_date_sk AND i_item_sk = ss_item_sk AND s_store_sk = ss_store_sk AND ss_customer_sk = cs_bill_customer_sk
  AND ss_item_sk = sr_item_sk AND ss_ticket_number = sr_ticket_number AND sr_returned_date_sk = d2.d_date_sk AND d2.d_year IN (2019, 2020) AND cs_sold_date_sk = d3.d_date_sk AND d3.d_year = 2020
GROUP BY i_category, s_state ORDER BY i_category, s_state

-- case: 17, by the customer that the return names
SELECT COUNT(*) AS n FROM store_sales, store_returns, catalog_sales
WHERE ss_customer_sk = sr_customer_sk AND ss_item_sk = sr_item_sk AND ss_ticket_number = sr_ticket_number AND sr_customer_sk = cs_bill_customer_sk AND sr_item_sk = cs_item_sk

-- case: 18, averages along places with subtotals
SELECT ca_country, ca_state, ca_county, AVG(cs_quantity) AS q, AVG(cs_coupon_amt) AS coupon, AVG(c_birth_year) AS born, AVG(cd1.cd_dep_count) AS dependents
FROM catalog_sales, customer_demographics cd1, customer_demographics cd2, customer, customer_address, date_dim
WHERE cs_sold_date_sk = d_date_sk AND cs_bill_cdemo_sk = cd1.cd_demo_sk AND cs_bill_customer_sk = c_customer_sk AND cd1.cd_gender = 'M' AND c_current_cdemo_sk = cd2.cd_demo_sk
  AND c_current_addr_sk = ca_address_sk AND c_birth_month IN (1, 2, 7, 9, 11) AND d_year = 2020 AND ca_state IN ('AK', 'ME', 'VT')
GROUP BY ROLLUP (ca_country, ca_state, ca_county) ORDER BY ca_country NULLS LAST, ca_state NULLS LAST, ca_county NULLS LAST

-- case: 19, brands bought away from home
SELECT i_brand, i_manufact_id, SUM(ss_ext_sales_price) AS price FROM date_dim, store_sales, item, customer, customer_address, store
WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manager_id = 5 AND d_year = 2020 AND ss_customer_sk = c_customer_sk AND c_current_addr_sk = ca_address_sk
  AND SUBSTR(ca_zip, 1, 4) <> SUBSTR(s_zip, 1, 4) AND ss_store_sk = s_store_sk GROUP BY i_brand, i_manufact_id ORDER BY price DESC, i_brand, i_manufact_id

-- case: 20, what a brand has of the catalog sales of its category
SELECT i_category, i_brand, SUM(cs_quantity) AS q, SUM(cs_quantity) * 100.0 / SUM(SUM(cs_quantity)) OVER (PARTITION BY i_category) AS share
FROM catalog_sales, item, date_dim WHERE cs_item_sk = i_item_sk AND i_category IN ('Home', 'Music') AND cs_sold_date_sk = d_date_sk AND d_date BETWEEN CAST('2019-09-01' AS date) AND (CAST('2019-09-01' AS date) + INTERVAL '200' DAY)
GROUP BY i_category, i_brand ORDER BY i_category, share DESC, i_brand

-- case: 21, stock before and after a day
SELECT * FROM (
  SELECT w_warehouse_name, i_item_id, SUM(CASE WHEN d_date < DATE '2020-03-11' THEN inv_quantity_on_hand ELSE 0 END) AS before_, SUM(CASE WHEN d_date >= DATE '2020-03-11' THEN inv_quantity_on_hand ELSE 0 END) AS after_
  FROM inventory, warehouse, item, date_dim WHERE i_current_price BETWEEN 20 AND 40 AND i_item_sk = inv_item_sk AND inv_warehouse_sk = w_warehouse_sk AND inv_date_sk = d_date_sk
    AND d_date BETWEEN DATE '2020-02-10' AND DATE '2020-04-10' GROUP BY w_warehouse_name, i_item_id) x
WHERE CASE WHEN before_ > 0 THEN after_ * 1.0 / before_ END BETWEEN 0.5 AND 2 ORDER BY w_warehouse_name, i_item_id

-- case: 22, mean stock with subtotals
SELECT i_category, i_brand, AVG(inv_quantity_on_hand) AS q FROM inventory, date_dim, item WHERE inv_date_sk = d_date_sk AND inv_item_sk = i_item_sk AND d_month_seq BETWEEN 1440 AND 1445
GROUP BY ROLLUP (i_category, i_brand) ORDER BY q, i_category NULLS LAST, i_brand NULLS LAST

-- case: 23, what the best customers buy of what sells often
WITH often AS (SELECT ss_item_sk AS item, COUNT(*) AS n FROM store_sales, date_dim WHERE ss_sold_date_sk = d_date_sk AND d_year IN (2019, 2020) GROUP BY ss_item_sk HAVING COUNT(*) > 10),
totals AS (SELECT ss_customer_sk AS who, SUM(ss_quantity * ss_sales_price) AS total FROM store_sales GROUP BY ss_customer_sk),
best AS (SELECT who FROM totals WHERE total > 60000)
SELECT SUM(sales) AS sales FROM (
  SELECT cs_quantity * cs_list_price AS sales FROM catalog_sales, date_dim WHERE d_year = 2020 AND d_moy <= 6 AND cs_sold_date_sk = d_date_sk
    AND cs_item_sk IN (SELECT item FROM often) AND cs_bill_customer_sk IN (SELECT who FROM best)
  UNION ALL
  SELECT ws_quantity * ws_list_price FROM web_sales, date_dim WHERE d_year = 2020 AND d_moy <= 6 AND ws_sold_date_sk = d_date_sk
    AND ws_item_sk IN (SELECT item FROM often) AND ws_bill_customer_sk IN (SELECT who FROM best)) y

-- case: 23, the best customer by the largest total
-- tolerance: 3%
SELECT MAX(total) AS largest FROM (SELECT ss_customer_sk AS who, SUM(ss_sales_price) AS total FROM store_sales GROUP BY ss_customer_sk) t

-- case: 24, what sellers of one color paid, by name
WITH sold AS (
  SELECT c_last_name AS last, c_first_name AS first, s_store_name AS shop, i_color AS color, SUM(ss_net_paid) AS paid
  FROM store_sales, store_returns, store, item, customer, customer_address
  WHERE ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk AND ss_customer_sk = c_customer_sk AND ss_item_sk = i_item_sk AND ss_store_sk = s_store_sk
    AND c_current_addr_sk = ca_address_sk AND c_birth_country <> UPPER(ca_country) AND s_market_id = 2 GROUP BY c_last_name, c_first_name, s_store_name, i_color)
SELECT last, shop, SUM(paid) AS paid FROM sold WHERE color = 'gold' GROUP BY last, shop HAVING SUM(paid) > (SELECT 0.05 * AVG(paid) FROM sold) ORDER BY last, shop

-- case: 25, profit and loss of what was returned and bought again
SELECT i_class, s_store_name, SUM(ss_net_profit) AS sold, SUM(sr_net_loss) AS lost, SUM(ws_net_profit) AS again
FROM store_sales, store_returns, web_sales, date_dim d1, date_dim d2, store, item
WHERE d1.d_year = 2020 AND d1.d_date_sk = ss_sold_date_sk AND i_item_sk = ss_item_sk AND s_store_sk = ss_store_sk AND ss_item_sk = sr_item_sk AND ss_ticket_number = sr_ticket_number
  AND sr_returned_date_sk = d2.d_date_sk AND d2.d_moy BETWEEN 2 AND 11 AND ss_customer_sk = ws_bill_customer_sk GROUP BY i_class, s_store_name ORDER BY i_class, s_store_name

-- case: 26, catalog averages by class of the educated
SELECT i_class, AVG(cs_quantity) AS q, AVG(cs_sales_price) AS price FROM catalog_sales, customer_demographics, date_dim, item, promotion
WHERE cs_sold_date_sk = d_date_sk AND cs_item_sk = i_item_sk AND cs_bill_cdemo_sk = cd_demo_sk AND cs_promo_sk = p_promo_sk AND cd_education_status = 'College'
  AND (p_channel_email = 'N' OR p_channel_event = 'N') AND d_year = 2020 GROUP BY i_class ORDER BY i_class

-- case: 27, averages by category and state with subtotals
SELECT i_category, s_state, GROUPING(s_state) AS g, AVG(ss_quantity) AS q, AVG(ss_coupon_amt) AS coupon FROM store_sales, customer_demographics, date_dim, store, item
WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND ss_store_sk = s_store_sk AND ss_cdemo_sk = cd_demo_sk AND cd_gender = 'M' AND d_year = 2021 AND s_state IN ('AK', 'ME')
GROUP BY ROLLUP (i_category, s_state) ORDER BY i_category NULLS LAST, s_state NULLS LAST

-- case: 28, averages and distinct values of bands side by side
SELECT * FROM
  (SELECT AVG(ss_list_price) AS a1, COUNT(ss_list_price) AS n1, COUNT(DISTINCT ss_quantity) AS d1 FROM store_sales WHERE ss_quantity BETWEEN 0 AND 9 AND (ss_list_price BETWEEN 20 AND 60 OR ss_coupon_amt < 90)) b1,
  (SELECT AVG(ss_list_price) AS a2, COUNT(ss_list_price) AS n2, COUNT(DISTINCT ss_quantity) AS d2 FROM store_sales WHERE ss_quantity BETWEEN 10 AND 19 AND (ss_list_price BETWEEN 60 AND 99 OR ss_wholesale_cost > 40)) b2,
  (SELECT AVG(ss_list_price) AS a3, COUNT(ss_list_price) AS n3, COUNT(DISTINCT ss_list_price) AS d3 FROM store_sales WHERE ss_quantity BETWEEN 20 AND 29) b3

-- case: 29, quantities by item name and store
SELECT i_brand, s_store_id, SUM(ss_quantity) AS sold, SUM(sr_return_quantity) AS back, SUM(ws_quantity) AS web
FROM store_sales JOIN store_returns ON ss_item_sk = sr_item_sk AND ss_ticket_number = sr_ticket_number JOIN web_sales ON ws_bill_customer_sk = ss_customer_sk AND ws_item_sk <> ss_item_sk
  JOIN date_dim d1 ON d1.d_date_sk = ss_sold_date_sk JOIN date_dim d2 ON d2.d_date_sk = ws_sold_date_sk JOIN store ON s_store_sk = ss_store_sk JOIN item ON i_item_sk = ss_item_sk
WHERE d1.d_moy = 9 AND d1.d_year = 2019 AND d2.d_year IN (2019, 2020, 2021) GROUP BY i_brand, s_store_id ORDER BY i_brand, s_store_id

-- case: 30, customers of a state who return much by web
WITH back AS (SELECT wr_refunded_customer_sk AS who, ca_state AS state, SUM(wr_return_amt) AS amount FROM web_returns, date_dim, customer_address
  WHERE wr_returned_date_sk = d_date_sk AND d_year = 2020 AND wr_refunded_addr_sk = ca_address_sk GROUP BY wr_refunded_customer_sk, ca_state)
SELECT c_customer_id, c_first_name, amount FROM back b1, customer, customer_address
WHERE amount > (SELECT AVG(amount) * 1.2 FROM back b2 WHERE b1.state = b2.state) AND ca_address_sk = c_current_addr_sk AND ca_state = 'AK' AND b1.who = c_customer_sk ORDER BY 1, 2, 3
---- error
NotPrivate 0A000: this would return single private rows
LINE 3: SELECT c_customer_id, c_first_name, amount FROM back b1, customer, customer_address
               ^
HINT:  Aggregate, for example: SELECT c_first_name, COUNT(*) FROM customer GROUP BY c_first_name.

-- case: 31, counties where the web grows faster than the stores
WITH ss AS (SELECT ca_county AS county, d_qoy AS quarter, SUM(ss_net_paid) AS paid FROM store_sales, date_dim, customer_address
  WHERE ss_sold_date_sk = d_date_sk AND ss_addr_sk = ca_address_sk AND d_year = 2020 GROUP BY ca_county, d_qoy),
ws AS (SELECT ca_county AS county, d_qoy AS quarter, SUM(ws_net_paid) AS paid FROM web_sales, date_dim, customer_address
  WHERE ws_sold_date_sk = d_date_sk AND ws_bill_addr_sk = ca_address_sk AND d_year = 2020 GROUP BY ca_county, d_qoy)
SELECT s1.county, w2.paid / w1.paid AS web, s2.paid / s1.paid AS store FROM ss s1, ss s2, ws w1, ws w2
WHERE s1.quarter = 1 AND s2.quarter = 3 AND w1.quarter = 1 AND w2.quarter = 3 AND s1.county = s2.county AND s1.county = w1.county AND w1.county = w2.county
  AND CASE WHEN w1.paid > 0 THEN w2.paid / w1.paid END > CASE WHEN s1.paid > 0 THEN s2.paid / s1.paid END ORDER BY s1.county

-- case: 32, discounts above what is usual for the item
SELECT SUM(cs_ext_discount_amt) AS excess FROM catalog_sales, item, date_dim
WHERE i_manufact_id BETWEEN 3 AND 20 AND i_item_sk = cs_item_sk AND d_date BETWEEN DATE '2019-02-01' AND DATE '2020-02-01' AND d_date_sk = cs_sold_date_sk
  AND cs_ext_discount_amt > (SELECT 1.1 * AVG(cs_ext_discount_amt) FROM catalog_sales, date_dim
    WHERE cs_item_sk = i_item_sk AND d_date BETWEEN DATE '2019-02-01' AND DATE '2020-02-01' AND d_date_sk = cs_sold_date_sk)

-- case: 34, names on tickets of many lines
SELECT c_last_name, c_first_name, ss_ticket_number, n FROM (
  SELECT ss_ticket_number, ss_customer_sk, COUNT(*) AS n FROM store_sales, date_dim, store, household_demographics
  WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND ss_hdemo_sk = hd_demo_sk AND d_dom BETWEEN 1 AND 7 AND hd_buy_potential = '>10000' GROUP BY ss_ticket_number, ss_customer_sk) t, customer
WHERE ss_customer_sk = c_customer_sk AND n BETWEEN 3 AND 5 ORDER BY 1, 2, 3
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT c_last_name, c_first_name, ss_ticket_number, n FROM (
               ^
HINT:  Aggregate, for example: SELECT c_last_name, COUNT(*) FROM customer GROUP BY c_last_name.

-- case: 34, how many tickets have many lines
SELECT n, COUNT(*) AS tickets FROM (
  SELECT ss_ticket_number, ss_customer_sk, COUNT(*) AS n FROM store_sales, date_dim, household_demographics
  WHERE ss_sold_date_sk = d_date_sk AND ss_hdemo_sk = hd_demo_sk AND d_dom BETWEEN 1 AND 7 AND hd_buy_potential = '>10000' GROUP BY ss_ticket_number, ss_customer_sk) t
WHERE n BETWEEN 2 AND 5 GROUP BY n ORDER BY n

-- case: 35, statistics of those who buy in a store and anywhere else
SELECT ca_state, cd_gender, COUNT(*) AS n, AVG(cd_dep_count) AS mean, SUM(cd_dep_count) AS total FROM customer c, customer_address ca, customer_demographics
WHERE c.c_current_addr_sk = ca.ca_address_sk AND cd_demo_sk = c.c_current_cdemo_sk
  AND EXISTS (SELECT * FROM store_sales, date_dim WHERE c.c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2021 AND d_qoy < 4)
  AND (EXISTS (SELECT * FROM web_sales, date_dim WHERE c.c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk AND d_year = 2021)
    OR EXISTS (SELECT * FROM catalog_sales, date_dim WHERE c.c_customer_sk = cs_bill_customer_sk AND cs_sold_date_sk = d_date_sk AND d_year = 2021))
GROUP BY ca_state, cd_gender ORDER BY ca_state, cd_gender

-- case: 36, margins ranked within their level
SELECT SUM(ss_net_profit) / SUM(ss_ext_sales_price) AS margin, i_category, i_class, GROUPING(i_category) + GROUPING(i_class) AS level,
  RANK() OVER (PARTITION BY GROUPING(i_category) + GROUPING(i_class), CASE WHEN GROUPING(i_class) = 0 THEN i_category END ORDER BY SUM(ss_net_profit) / SUM(ss_ext_sales_price)) AS place
FROM store_sales, date_dim d1, item, store WHERE d1.d_year = 2020 AND d1.d_date_sk = ss_sold_date_sk AND i_item_sk = ss_item_sk AND s_store_sk = ss_store_sk AND s_state IN ('ME', 'UT', 'VT')
GROUP BY ROLLUP (i_category, i_class) ORDER BY level DESC, CASE WHEN level = 0 THEN i_category END, place

-- case: 37, items in stock that the catalog sold
SELECT i_item_id, i_current_price FROM item, inventory, date_dim, catalog_sales
WHERE i_current_price BETWEEN 30 AND 60 AND inv_item_sk = i_item_sk AND d_date_sk = inv_date_sk AND d_date BETWEEN DATE '2020-02-01' AND DATE '2020-04-01' AND i_manufact_id BETWEEN 1 AND 20
  AND inv_quantity_on_hand BETWEEN 100 AND 500 AND cs_item_sk = i_item_sk GROUP BY i_item_id, i_current_price ORDER BY i_item_id

-- case: 37, how much the catalog sold of what is in stock
SELECT i_category, SUM(cs_quantity) AS q FROM item, inventory, date_dim, catalog_sales
WHERE inv_item_sk = i_item_sk AND d_date_sk = inv_date_sk AND d_date BETWEEN DATE '2020-02-01' AND DATE '2020-04-01' AND inv_quantity_on_hand BETWEEN 100 AND 500 AND cs_item_sk = i_item_sk GROUP BY i_category ORDER BY i_category

-- case: 38, customers of all three channels on a day
SELECT COUNT(*) AS n FROM (
  SELECT DISTINCT c_last_name, c_first_name, d_date FROM store_sales, date_dim, customer WHERE ss_sold_date_sk = d_date_sk AND ss_customer_sk = c_customer_sk AND d_year = 2020
  INTERSECT SELECT DISTINCT c_last_name, c_first_name, d_date FROM catalog_sales, date_dim, customer WHERE cs_sold_date_sk = d_date_sk AND cs_bill_customer_sk = c_customer_sk AND d_year = 2020
  INTERSECT SELECT DISTINCT c_last_name, c_first_name, d_date FROM web_sales, date_dim, customer WHERE ws_sold_date_sk = d_date_sk AND ws_bill_customer_sk = c_customer_sk AND d_year = 2020) hot
---- error
Unsupported 0A000: INTERSECT of keys that must be selected cannot be counted
LINE 2:   SELECT DISTINCT c_last_name, c_first_name, d_date FROM store_sales, date_dim, customer WHERE ss_sold_date_sk = d_date_sk AND ss_customer_sk = c_customer_sk AND d_year = 2020
                          ^
DETAIL:  Keys that few units have are left out of each side, so the number would be wrong.
HINT:  Add the privacy unit's column in the same place on both sides, so that rows of each unit are compared, or join the public table that lists the keys.

-- case: 38, customers of all three channels in a month, by their key
SELECT COUNT(*) AS n FROM (
  SELECT DISTINCT c_customer_sk, d_month_seq FROM store_sales, date_dim, customer WHERE ss_sold_date_sk = d_date_sk AND ss_customer_sk = c_customer_sk
  INTERSECT SELECT DISTINCT c_customer_sk, d_month_seq FROM catalog_sales, date_dim, customer WHERE cs_sold_date_sk = d_date_sk AND cs_bill_customer_sk = c_customer_sk
  INTERSECT SELECT DISTINCT c_customer_sk, d_month_seq FROM web_sales, date_dim, customer WHERE ws_sold_date_sk = d_date_sk AND ws_bill_customer_sk = c_customer_sk) hot

-- case: 39, items whose stock varies from month to month
WITH inv AS (
  SELECT w_warehouse_sk, i_item_sk, d_moy, STDDEV_SAMP(inv_quantity_on_hand) AS deviation, AVG(inv_quantity_on_hand) AS mean FROM inventory, item, warehouse, date_dim
  WHERE inv_item_sk = i_item_sk AND inv_warehouse_sk = w_warehouse_sk AND inv_date_sk = d_date_sk AND d_year = 2020 GROUP BY w_warehouse_sk, i_item_sk, d_moy)
SELECT a.w_warehouse_sk, a.i_item_sk, a.mean, a.deviation / a.mean AS cov, b.mean AS next FROM inv a JOIN inv b ON a.i_item_sk = b.i_item_sk AND a.w_warehouse_sk = b.w_warehouse_sk
WHERE a.d_moy = 3 AND b.d_moy = 4 AND a.deviation / a.mean > 0.5 ORDER BY 1, 2

-- case: 40, catalog less what was refunded, before and after a day
-- tolerance: 0.001 in before_, after_
SELECT w_state, i_color, SUM(CASE WHEN d_date < DATE '2020-05-05' THEN cs_sales_price - COALESCE(cr_refunded_cash, 0) ELSE 0 END) AS before_,
  SUM(CASE WHEN d_date >= DATE '2020-05-05' THEN cs_sales_price - COALESCE(cr_refunded_cash, 0) ELSE 0 END) AS after_
FROM catalog_sales LEFT OUTER JOIN catalog_returns ON cs_order_number = cr_order_number AND cs_item_sk = cr_item_sk, warehouse, item, date_dim
WHERE i_current_price BETWEEN 10 AND 50 AND i_item_sk = cs_item_sk AND cs_warehouse_sk = w_warehouse_sk AND cs_sold_date_sk = d_date_sk AND d_date BETWEEN DATE '2020-03-05' AND DATE '2020-07-05'
GROUP BY w_state, i_color ORDER BY w_state, i_color

-- case: 41, descriptions of makers with certain goods
SELECT DISTINCT i_item_desc FROM item i1 WHERE i_manufact_id BETWEEN 4 AND 9 AND (SELECT COUNT(*) FROM item WHERE i_manufact_id = i1.i_manufact_id
  AND ((i_category = 'Home' AND i_color IN ('red', 'navy') AND i_size = 'small') OR (i_category = 'Books' AND i_size = 'large'))) > 2 ORDER BY i_item_desc

-- case: 42, categories of a month
SELECT d_year, i_category, SUM(ss_coupon_amt) AS coupons FROM date_dim, store_sales, item WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manager_id < 9 AND d_moy = 12 AND d_year = 2020
GROUP BY d_year, i_category ORDER BY coupons DESC, d_year, i_category LIMIT 3

-- case: 43, stores by weekday
SELECT s_store_name, SUM(CASE WHEN d_day_name = 'Monday' THEN ss_net_paid END) AS mon, SUM(CASE WHEN d_day_name = 'Friday' THEN ss_net_paid ELSE NULL END) AS fri, SUM(CASE WHEN d_dow IN (0, 6) THEN ss_net_paid END) AS rest
FROM date_dim, store_sales, store WHERE d_date_sk = ss_sold_date_sk AND s_store_sk = ss_store_sk AND s_gmt_offset = -5 AND d_year = 2019 GROUP BY s_store_name ORDER BY s_store_name

-- case: 44, best and worst brands of a store side by side
WITH means AS (SELECT i_brand_id AS brand, AVG(ss_net_profit) AS profit FROM store_sales, item WHERE ss_item_sk = i_item_sk AND ss_store_sk = 4 GROUP BY i_brand_id
  HAVING AVG(ss_net_profit) > (SELECT 0.9 * AVG(ss_net_profit) - 9000 FROM store_sales WHERE ss_store_sk = 4 AND ss_promo_sk IS NULL GROUP BY ss_store_sk)),
up AS (SELECT brand, RANK() OVER (ORDER BY profit ASC) AS place FROM means), down AS (SELECT brand, RANK() OVER (ORDER BY profit DESC) AS place FROM means)
SELECT up.place, a.i_brand AS worst, b.i_brand AS best FROM up, down, (SELECT DISTINCT i_brand_id, i_brand FROM item) a, (SELECT DISTINCT i_brand_id, i_brand FROM item) b
WHERE up.place = down.place AND up.place < 6 AND a.i_brand_id = up.brand AND b.i_brand_id = down.brand ORDER BY up.place

-- case: 45, web sales by county of some zips or some items
SELECT ca_county, ca_state, SUM(ws_net_paid) AS paid FROM web_sales, customer, customer_address, date_dim, item
WHERE ws_bill_customer_sk = c_customer_sk AND c_current_addr_sk = ca_address_sk AND ws_item_sk = i_item_sk
  AND (SUBSTR(ca_zip, 1, 4) IN ('1013', '1109', '1260') OR i_item_id IN (SELECT i_item_id FROM item WHERE i_item_sk IN (2, 30, 55, 71, 90, 106, 131, 190)))
  AND ws_sold_date_sk = d_date_sk AND d_year = 2020 GROUP BY ca_county, ca_state ORDER BY ca_county, ca_state

-- case: 46, tickets bought away from home
SELECT c_last_name, ca_city, ss_ticket_number, amount FROM (
  SELECT ss_ticket_number, ss_customer_sk, ca_city AS bought, SUM(ss_coupon_amt) AS amount FROM store_sales, date_dim, store, household_demographics, customer_address
  WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND ss_hdemo_sk = hd_demo_sk AND ss_addr_sk = ca_address_sk AND hd_dep_count = 3 AND d_dow IN (6, 0) GROUP BY ss_ticket_number, ss_customer_sk, ca_city) t,
  customer, customer_address current_ WHERE ss_customer_sk = c_customer_sk AND c_current_addr_sk = current_.ca_address_sk AND current_.ca_city <> bought ORDER BY 1, 2, 3
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT c_last_name, ca_city, ss_ticket_number, amount FROM (
               ^
HINT:  Aggregate, for example: SELECT c_last_name, COUNT(*) FROM customer GROUP BY c_last_name.

-- case: 46, how much tickets bought away from home come to
SELECT COUNT(*) AS n, AVG(amount) AS mean FROM (
  SELECT ss_ticket_number, ss_customer_sk, ca_city AS bought, SUM(ss_coupon_amt) AS amount FROM store_sales, date_dim, customer_address
  WHERE ss_sold_date_sk = d_date_sk AND ss_addr_sk = ca_address_sk AND d_dow IN (6, 0) GROUP BY ss_ticket_number, ss_customer_sk, ca_city) t,
  customer, customer_address current_ WHERE ss_customer_sk = c_customer_sk AND c_current_addr_sk = current_.ca_address_sk AND current_.ca_city <> bought

-- case: 47, months of a brand against their year's mean, with neighbors
WITH v1 AS (
  SELECT i_category, s_state, d_year, d_moy, SUM(ss_quantity) AS sold, AVG(SUM(ss_quantity)) OVER (PARTITION BY i_category, s_state, d_year) AS mean,
    RANK() OVER (PARTITION BY i_category, s_state ORDER BY d_year, d_moy) AS rn
  FROM item, store_sales, date_dim, store WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk
    AND (d_year = 2020 OR (d_year = 2019 AND d_moy = 12) OR (d_year = 2021 AND d_moy = 1)) AND i_category IN ('Home', 'Music') GROUP BY i_category, s_state, d_year, d_moy)
SELECT v1.i_category, v1.s_state, v1.d_moy, v1.mean, v1.sold, lag_.sold AS before_, lead_.sold AS after_ FROM v1, v1 lag_, v1 lead_
WHERE v1.i_category = lag_.i_category AND v1.i_category = lead_.i_category AND v1.s_state = lag_.s_state AND v1.s_state = lead_.s_state AND v1.rn = lag_.rn + 1 AND v1.rn = lead_.rn - 1
  AND v1.d_year = 2020 AND v1.mean > 0 AND ABS(v1.sold - v1.mean) / v1.mean > 0.1 ORDER BY 1, 2, 3

-- case: 48, quantity by demographics or by address
SELECT SUM(ss_quantity) AS q FROM store_sales, store, customer_demographics, customer_address, date_dim
WHERE s_store_sk = ss_store_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2020
  AND ((cd_demo_sk = ss_cdemo_sk AND cd_marital_status = 'W' AND ss_sales_price BETWEEN 50 AND 120) OR (cd_demo_sk = ss_cdemo_sk AND cd_education_status = 'Primary' AND ss_sales_price < 150))
  AND ((ss_addr_sk = ca_address_sk AND ca_state = 'AK' AND ss_net_profit > -500) OR (ss_addr_sk = ca_address_sk AND ca_state IN ('ME', 'VT') AND ss_net_profit < 9000))

-- case: 49, brands by the part that came back, two channels
SELECT channel, brand, ratio, place FROM (
  SELECT 'web' AS channel, brand, ratio, RANK() OVER (ORDER BY ratio) AS place FROM (
    SELECT i_brand_id AS brand, SUM(COALESCE(wr_return_quantity, 0)) * 1.0 / SUM(COALESCE(ws_quantity, 0)) AS ratio
    FROM web_sales ws LEFT JOIN web_returns wr ON ws.ws_order_number = wr.wr_order_number AND ws.ws_item_sk = wr.wr_item_sk, date_dim, item
    WHERE ws_net_profit > 1 AND ws_sold_date_sk = d_date_sk AND d_year = 2020 AND i_item_sk = ws_item_sk GROUP BY i_brand_id) x
  UNION
  SELECT 'catalog', brand, ratio, RANK() OVER (ORDER BY ratio) FROM (
    SELECT i_brand_id AS brand, SUM(COALESCE(cr_return_quantity, 0)) * 1.0 / SUM(COALESCE(cs_quantity, 0)) AS ratio
    FROM catalog_sales cs LEFT JOIN catalog_returns cr ON cs.cs_order_number = cr.cr_order_number AND cs.cs_item_sk = cr.cr_item_sk, date_dim, item
    WHERE cs_net_profit > 1 AND cs_sold_date_sk = d_date_sk AND d_year = 2020 AND i_item_sk = cs_item_sk GROUP BY i_brand_id) y) z
WHERE place <= 10 ORDER BY channel, place, brand

-- case: 50, days until something came back, by store
SELECT s_store_name, s_county, SUM(CASE WHEN sr_returned_date_sk - ss_sold_date_sk <= 20 THEN 1 ELSE 0 END) AS d20,
  SUM(CASE WHEN sr_returned_date_sk - ss_sold_date_sk > 20 AND sr_returned_date_sk - ss_sold_date_sk <= 100 THEN 1 ELSE 0 END) AS d100, SUM(CASE WHEN sr_returned_date_sk - ss_sold_date_sk > 100 THEN 1 ELSE 0 END) AS more
FROM store_sales, store_returns, store, date_dim d1, date_dim d2 WHERE d2.d_year = 2020 AND d2.d_moy >= 8 AND ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk
  AND ss_sold_date_sk = d1.d_date_sk AND sr_returned_date_sk = d2.d_date_sk AND ss_customer_sk = sr_customer_sk AND ss_store_sk = s_store_sk GROUP BY s_store_name, s_county ORDER BY 1, 2

-- case: 51, running totals of two channels side by side
WITH web AS (SELECT i_category AS c, d_month_seq AS m, SUM(SUM(ws_quantity)) OVER (PARTITION BY i_category ORDER BY d_month_seq ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS total
  FROM web_sales, date_dim, item WHERE ws_sold_date_sk = d_date_sk AND d_month_seq BETWEEN 1436 AND 1445 AND ws_item_sk = i_item_sk GROUP BY i_category, d_month_seq),
shop AS (SELECT i_category AS c, d_month_seq AS m, SUM(SUM(ss_quantity)) OVER (PARTITION BY i_category ORDER BY d_month_seq ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS total
  FROM store_sales, date_dim, item WHERE ss_sold_date_sk = d_date_sk AND d_month_seq BETWEEN 1438 AND 1449 AND ss_item_sk = i_item_sk GROUP BY i_category, d_month_seq)
SELECT * FROM (SELECT c, m, web, shop, MAX(web) OVER (PARTITION BY c ORDER BY m ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS web_most, MAX(shop) OVER (PARTITION BY c ORDER BY m ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS shop_most
  FROM (SELECT COALESCE(web.c, shop.c) AS c, COALESCE(web.m, shop.m) AS m, web.total AS web, shop.total AS shop FROM web FULL OUTER JOIN shop ON web.c = shop.c AND web.m = shop.m) x) y
WHERE web_most < shop_most ORDER BY c, m

-- case: 52, brands of a month
SELECT d_year, i_brand, SUM(ss_quantity) AS q FROM date_dim, store_sales, item WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manager_id > 12 AND d_moy = 11 AND d_year = 2021
GROUP BY d_year, i_brand ORDER BY d_year, q DESC, i_brand LIMIT 7

-- case: 54, how much those spend whom a campaign brought, in steps of 10,000
WITH mine AS (
  SELECT DISTINCT c_customer_sk, c_current_addr_sk FROM (
    SELECT cs_sold_date_sk AS day, cs_bill_customer_sk AS who, cs_item_sk AS what FROM catalog_sales UNION ALL SELECT ws_sold_date_sk, ws_bill_customer_sk, ws_item_sk FROM web_sales) x, item, date_dim, customer
  WHERE day = d_date_sk AND what = i_item_sk AND i_category = 'Shoes' AND c_customer_sk = who AND d_year = 2020 AND d_moy <= 3),
revenue AS (SELECT c_customer_sk, SUM(ss_net_paid) AS r FROM mine, store_sales, customer_address, store, date_dim
  WHERE c_current_addr_sk = ca_address_sk AND ca_county = s_county AND ca_state = s_state AND ss_sold_date_sk = d_date_sk AND c_customer_sk = ss_customer_sk
    AND d_month_seq BETWEEN (SELECT DISTINCT d_month_seq + 1 FROM date_dim WHERE d_year = 2020 AND d_moy = 3) AND (SELECT DISTINCT d_month_seq + 9 FROM date_dim WHERE d_year = 2020 AND d_moy = 3) GROUP BY c_customer_sk)
SELECT COUNT(*) AS n, AVG(CAST(r / 10000 AS INT)) AS segment FROM revenue

-- case: 55, brands of a manager
SELECT i_brand_id, SUM(ss_net_paid) AS paid FROM date_dim, store_sales, item WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manager_id IN (8, 17) AND d_year = 2021 GROUP BY i_brand_id ORDER BY paid DESC, i_brand_id

-- case: 56, colors over three channels
WITH ss AS (SELECT i_item_id, SUM(ss_quantity) AS total FROM store_sales, date_dim, customer_address, item WHERE i_item_id IN (SELECT i_item_id FROM item WHERE i_color IN ('plum', 'rose'))
  AND ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2020 AND ss_addr_sk = ca_address_sk AND ca_gmt_offset = -6 GROUP BY i_item_id),
ws AS (SELECT i_item_id, SUM(ws_quantity) AS total FROM web_sales, date_dim, customer_address, item WHERE i_item_id IN (SELECT i_item_id FROM item WHERE i_color IN ('plum', 'rose'))
  AND ws_item_sk = i_item_sk AND ws_sold_date_sk = d_date_sk AND d_year = 2020 AND ws_bill_addr_sk = ca_address_sk AND ca_gmt_offset = -6 GROUP BY i_item_id)
SELECT i_item_id, SUM(total) AS total FROM (SELECT * FROM ss UNION ALL SELECT * FROM ws) x GROUP BY i_item_id HAVING SUM(total) > 0 ORDER BY total, i_item_id

-- case: 58, brands that sell alike in three channels
WITH s AS (SELECT i_brand AS b, SUM(ss_quantity) AS r FROM store_sales, item, date_dim WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk
    AND d_date IN (SELECT d_date FROM date_dim WHERE d_month_seq = (SELECT d_month_seq FROM date_dim WHERE d_date = DATE '2020-03-15')) GROUP BY i_brand),
w AS (SELECT i_brand AS b, SUM(ws_quantity) AS r FROM web_sales, item, date_dim WHERE ws_item_sk = i_item_sk AND ws_sold_date_sk = d_date_sk
    AND d_date IN (SELECT d_date FROM date_dim WHERE d_month_seq = (SELECT d_month_seq FROM date_dim WHERE d_date = DATE '2020-03-15')) GROUP BY i_brand)
SELECT s.b, s.r AS store, w.r AS web, s.r / ((s.r + w.r) / 2.0) * 100 AS part FROM s, w WHERE s.b = w.b AND s.r BETWEEN 0.2 * w.r AND 5 * w.r ORDER BY s.b

-- case: 59, weeks of a store against the year after
WITH wss AS (SELECT d_week_seq, ss_store_sk, SUM(CASE WHEN d_day_name = 'Sunday' THEN ss_sales_price END) AS sun, SUM(CASE WHEN d_day_name = 'Tuesday' THEN ss_sales_price END) AS tue
  FROM store_sales, date_dim WHERE d_date_sk = ss_sold_date_sk GROUP BY d_week_seq, ss_store_sk)
SELECT a.name, a.week, a.sun / b.sun AS sun, a.tue / b.tue AS tue FROM
  (SELECT s_store_name AS name, wss.d_week_seq AS week, s_store_sk AS id, sun, tue FROM wss, store, date_dim d WHERE d.d_week_seq = wss.d_week_seq AND ss_store_sk = s_store_sk AND d_dow = 1 AND d_month_seq BETWEEN 1430 AND 1432) a,
  (SELECT wss.d_week_seq AS week, s_store_sk AS id, sun, tue FROM wss, store, date_dim d WHERE d.d_week_seq = wss.d_week_seq AND ss_store_sk = s_store_sk AND d_dow = 1 AND d_month_seq BETWEEN 1442 AND 1444) b
WHERE a.id = b.id AND a.week = b.week - 52 AND b.sun > 0 AND b.tue > 0 ORDER BY a.name, a.week, a.id

-- case: 61, what promotions have of all sales
SELECT promoted, total, CAST(promoted AS DECIMAL(15, 4)) / CAST(total AS DECIMAL(15, 4)) * 100 AS share FROM
  (SELECT SUM(ss_net_paid) AS promoted FROM store_sales, store, promotion, date_dim, customer, customer_address, item WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND ss_promo_sk = p_promo_sk
    AND ss_customer_sk = c_customer_sk AND ca_address_sk = c_current_addr_sk AND ss_item_sk = i_item_sk AND ca_gmt_offset = -5 AND i_category = 'Sports' AND (p_channel_dmail = 'Y' OR p_channel_tv = 'Y') AND d_year = 2020) p,
  (SELECT SUM(ss_net_paid) AS total FROM store_sales, store, date_dim, customer, customer_address, item WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk
    AND ss_customer_sk = c_customer_sk AND ca_address_sk = c_current_addr_sk AND ss_item_sk = i_item_sk AND ca_gmt_offset = -5 AND i_category = 'Sports' AND d_year = 2020) a

-- case: 62, days until the web ships
SELECT SUBSTR(w_warehouse_name, 1, 8) AS depot, sm_type, web_name, SUM(CASE WHEN ws_ship_date_sk - ws_sold_date_sk <= 40 THEN 1 ELSE 0 END) AS d40, SUM(CASE WHEN ws_ship_date_sk - ws_sold_date_sk > 40 THEN 1 ELSE 0 END) AS more
FROM web_sales, warehouse, ship_mode, web_site, date_dim WHERE d_month_seq BETWEEN 1436 AND 1447 AND ws_ship_date_sk = d_date_sk AND ws_warehouse_sk = w_warehouse_sk AND ws_ship_mode_sk = sm_ship_mode_sk AND ws_web_site_sk = web_site_sk
GROUP BY SUBSTR(w_warehouse_name, 1, 8), sm_type, web_name ORDER BY 1, 2, 3

-- case: 63, managers whose months stray from their mean
SELECT * FROM (SELECT i_manager_id, d_moy, SUM(ss_quantity) AS sold, AVG(SUM(ss_quantity)) OVER (PARTITION BY i_manager_id) AS mean FROM item, store_sales, date_dim, store
  WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND d_year = 2020 AND i_category = 'Books' GROUP BY i_manager_id, d_moy HAVING SUM(ss_quantity) > 0) t
WHERE CASE WHEN mean > 0 THEN ABS(sold - mean) / mean END > 0.1 ORDER BY i_manager_id, mean, sold, d_moy

-- case: 64, what was returned and sold again, year over year
WITH refunds AS (SELECT i_category AS kind, SUM(cs_ext_sales_price) AS sale, SUM(cr_refunded_cash) AS refund FROM catalog_sales, catalog_returns, item
    WHERE cs_item_sk = cr_item_sk AND cs_order_number = cr_order_number AND cs_item_sk = i_item_sk GROUP BY i_category HAVING SUM(cs_ext_sales_price) > 2 * SUM(cr_refunded_cash)),
cross_ AS (SELECT i_category AS kind, s_state AS state, ad1.ca_state AS home, d1.d_year AS year, COUNT(*) AS n, SUM(ss_wholesale_cost) AS cost, SUM(ss_coupon_amt) AS coupon
  FROM store_sales, store_returns, refunds, date_dim d1, date_dim d2, store, customer, customer_demographics cd1, customer_demographics cd2, promotion, household_demographics hd1, customer_address ad1, customer_address ad2, income_band ib1, item
  WHERE ss_store_sk = s_store_sk AND ss_sold_date_sk = d1.d_date_sk AND ss_customer_sk = c_customer_sk AND ss_cdemo_sk = cd1.cd_demo_sk AND ss_hdemo_sk = hd1.hd_demo_sk AND ss_addr_sk = ad1.ca_address_sk
    AND ss_item_sk = i_item_sk AND ss_item_sk = sr_item_sk AND ss_ticket_number = sr_ticket_number AND i_category = refunds.kind AND c_current_cdemo_sk = cd2.cd_demo_sk AND c_current_addr_sk = ad2.ca_address_sk
    AND sr_returned_date_sk = d2.d_date_sk AND ss_promo_sk = p_promo_sk AND hd1.hd_income_band_sk = ib1.ib_income_band_sk AND cd1.cd_marital_status <> cd2.cd_marital_status AND i_color IN ('red', 'mint', 'gold', 'rose')
  GROUP BY i_category, s_state, ad1.ca_state, d1.d_year)
SELECT a.kind, a.state, a.home, a.n, a.cost, b.n AS n2, b.cost AS cost2 FROM cross_ a, cross_ b WHERE a.kind = b.kind AND a.state = b.state AND a.home = b.home AND a.year = 2019 AND b.year = 2020 AND b.n <= a.n AND b.n > 0 ORDER BY 1, 2, 3

-- case: 65, brands that sell badly in their store
SELECT s_store_name, i_brand, sc.r AS revenue FROM store, (SELECT DISTINCT i_brand, i_brand_id FROM item) i,
  (SELECT store, AVG(r) AS mean FROM (SELECT ss_store_sk AS store, i_brand_id AS brand, SUM(ss_net_paid) AS r FROM store_sales, date_dim, item WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND d_year = 2020 GROUP BY ss_store_sk, i_brand_id) sa GROUP BY store) sb,
  (SELECT ss_store_sk AS store, i_brand_id AS brand, SUM(ss_net_paid) AS r FROM store_sales, date_dim, item WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND d_year = 2020 GROUP BY ss_store_sk, i_brand_id) sc
WHERE sb.store = sc.store AND sc.r <= 0.5 * sb.mean AND s_store_sk = sc.store AND i.i_brand_id = sc.brand ORDER BY s_store_name, i_brand, revenue

-- case: 66, warehouses by month over two channels
SELECT w_warehouse_name, w_state, SUM(jan) AS jan, SUM(jun) AS jun, SUM(jan / w_warehouse_sq_ft) AS jan_per_foot FROM (
  SELECT w_warehouse_name, w_state, w_warehouse_sq_ft, SUM(CASE WHEN d_moy = 1 THEN ws_net_paid * ws_quantity ELSE 0 END) AS jan, SUM(CASE WHEN d_moy = 6 THEN ws_net_paid * ws_quantity ELSE 0 END) AS jun
  FROM web_sales, warehouse, date_dim, time_dim, ship_mode WHERE ws_warehouse_sk = w_warehouse_sk AND ws_sold_date_sk = d_date_sk AND ws_sold_time_sk = t_time_sk AND ws_ship_mode_sk = sm_ship_mode_sk
    AND d_year = 2020 AND t_hour BETWEEN 6 AND 18 AND sm_carrier IN ('POST', 'TBS') GROUP BY w_warehouse_name, w_state, w_warehouse_sq_ft
  UNION ALL
  SELECT w_warehouse_name, w_state, w_warehouse_sq_ft, SUM(CASE WHEN d_moy = 1 THEN cs_net_paid * cs_quantity ELSE 0 END), SUM(CASE WHEN d_moy = 6 THEN cs_net_paid * cs_quantity ELSE 0 END)
  FROM catalog_sales, warehouse, date_dim, time_dim, ship_mode WHERE cs_warehouse_sk = w_warehouse_sk AND cs_sold_date_sk = d_date_sk AND cs_sold_time_sk = t_time_sk AND cs_ship_mode_sk = sm_ship_mode_sk
    AND d_year = 2020 AND t_hour BETWEEN 6 AND 18 AND sm_carrier IN ('POST', 'TBS') GROUP BY w_warehouse_name, w_state, w_warehouse_sq_ft) x
GROUP BY w_warehouse_name, w_state ORDER BY w_warehouse_name

-- case: 67, the best of each category on all levels
SELECT * FROM (SELECT i_category, i_class, d_qoy, s_state, total, RANK() OVER (PARTITION BY i_category ORDER BY total DESC) AS rk FROM (
  SELECT i_category, i_class, d_qoy, s_state, SUM(COALESCE(ss_sales_price * ss_quantity, 0)) AS total FROM store_sales, date_dim, store, item
  WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND ss_store_sk = s_store_sk AND d_month_seq BETWEEN 1440 AND 1451 GROUP BY ROLLUP (i_category, i_class, d_qoy, s_state)) a) b
WHERE rk <= 6 ORDER BY i_category NULLS LAST, rk, i_class NULLS LAST, d_qoy NULLS LAST, s_state NULLS LAST

-- case: 68, tickets of a city by name
SELECT c_last_name, c_first_name, bought, ss_ticket_number, list FROM (
  SELECT ss_ticket_number, ss_customer_sk, ca_city AS bought, SUM(ss_list_price) AS list FROM store_sales, date_dim, store, household_demographics, customer_address
  WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND ss_hdemo_sk = hd_demo_sk AND ss_addr_sk = ca_address_sk AND d_dom < 3 AND s_city IN ('Midway') GROUP BY ss_ticket_number, ss_customer_sk, ss_addr_sk, ca_city) t, customer
WHERE ss_customer_sk = c_customer_sk ORDER BY c_last_name, ss_ticket_number LIMIT 15
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT c_last_name, c_first_name, bought, ss_ticket_number, list FROM (
               ^
HINT:  Aggregate, for example: SELECT c_last_name, COUNT(*) FROM customer GROUP BY c_last_name.

-- case: 69, those who buy in stores and nowhere else
SELECT cd_credit_rating, COUNT(*) AS n FROM customer c, customer_address ca, customer_demographics
WHERE c.c_current_addr_sk = ca.ca_address_sk AND ca_state IN ('AK', 'VT') AND cd_demo_sk = c.c_current_cdemo_sk
  AND EXISTS (SELECT * FROM store_sales, date_dim WHERE c.c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2020 AND d_moy BETWEEN 3 AND 6)
  AND NOT EXISTS (SELECT * FROM web_sales, date_dim WHERE c.c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk AND d_year = 2020 AND d_moy BETWEEN 3 AND 6)
  AND NOT EXISTS (SELECT * FROM catalog_sales, date_dim WHERE c.c_customer_sk = cs_bill_customer_sk AND cs_sold_date_sk = d_date_sk AND d_year = 2020 AND d_moy BETWEEN 3 AND 6)
GROUP BY cd_credit_rating ORDER BY cd_credit_rating

-- case: 71, brands at breakfast and dinner over three channels
SELECT i_brand, t_hour, SUM(price) AS price FROM item, (
  SELECT ws_ext_sales_price AS price, ws_sold_date_sk AS day, ws_item_sk AS sk, ws_sold_time_sk AS time FROM web_sales, date_dim WHERE d_date_sk = ws_sold_date_sk AND d_moy = 10 AND d_year = 2020
  UNION ALL SELECT cs_ext_sales_price, cs_sold_date_sk, cs_item_sk, cs_sold_time_sk FROM catalog_sales, date_dim WHERE d_date_sk = cs_sold_date_sk AND d_moy = 10 AND d_year = 2020
  UNION ALL SELECT ss_ext_sales_price, ss_sold_date_sk, ss_item_sk, ss_sold_time_sk FROM store_sales, date_dim WHERE d_date_sk = ss_sold_date_sk AND d_moy = 10 AND d_year = 2020) x, time_dim
WHERE x.sk = i_item_sk AND i_manager_id < 12 AND x.time = t_time_sk AND (t_meal_time = 'breakfast' OR t_meal_time = 'dinner') GROUP BY i_brand, t_hour ORDER BY price DESC, i_brand, t_hour

-- case: 72, orders that the stock of the week could not serve
-- empty: i_category, w_warehouse_name
SELECT i_category, w_warehouse_name, SUM(CASE WHEN p_promo_sk IS NULL THEN 1 ELSE 0 END) AS plain, SUM(CASE WHEN p_promo_sk IS NOT NULL THEN 1 ELSE 0 END) AS promoted, COUNT(*) AS n
FROM catalog_sales JOIN inventory ON cs_item_sk = inv_item_sk JOIN warehouse ON w_warehouse_sk = inv_warehouse_sk JOIN item ON i_item_sk = cs_item_sk JOIN household_demographics ON cs_bill_hdemo_sk = hd_demo_sk
  JOIN date_dim d1 ON cs_sold_date_sk = d1.d_date_sk JOIN date_dim d2 ON inv_date_sk = d2.d_date_sk JOIN date_dim d3 ON cs_ship_date_sk = d3.d_date_sk
  LEFT OUTER JOIN promotion ON cs_promo_sk = p_promo_sk LEFT OUTER JOIN catalog_returns ON cr_item_sk = cs_item_sk AND cr_order_number = cs_order_number
WHERE d1.d_week_seq = d2.d_week_seq AND inv_quantity_on_hand < 5 * cs_quantity AND d3.d_date > d1.d_date + 4 AND d1.d_year = 2020 AND hd_buy_potential <> '0-500' GROUP BY i_category, w_warehouse_name ORDER BY n DESC, 1, 2

-- case: 73, names on tickets of households
SELECT c_last_name, c_preferred_cust_flag, ss_ticket_number, n FROM (SELECT ss_ticket_number, ss_customer_sk, COUNT(*) AS n FROM store_sales, date_dim, store, household_demographics
  WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND ss_hdemo_sk = hd_demo_sk AND hd_vehicle_count > 0 AND CASE WHEN hd_vehicle_count > 0 THEN hd_dep_count * 1.0 / hd_vehicle_count END > 1 GROUP BY ss_ticket_number, ss_customer_sk) dj, customer
WHERE ss_customer_sk = c_customer_sk AND n > 3 ORDER BY n DESC, 1, 3
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT c_last_name, c_preferred_cust_flag, ss_ticket_number, n FROM (SELECT ss_ticket_number, ss_customer_sk, COUNT(*) AS n FROM store_sales, date_dim, store, household_demographics
               ^
HINT:  Aggregate, for example: SELECT c_preferred_cust_flag, COUNT(*) FROM customer GROUP BY c_preferred_cust_flag.

-- case: 74, customers whose web grows, with CTEs by year
WITH w AS (SELECT c_customer_id AS id, d_year AS y, MAX(ws_net_paid) AS top FROM customer JOIN web_sales ON c_customer_sk = ws_bill_customer_sk JOIN date_dim ON d_date_sk = ws_sold_date_sk GROUP BY 1, 2)
SELECT a.id FROM w a JOIN w b USING (id) WHERE a.y = 2019 AND b.y = 2020 AND b.top > a.top ORDER BY 1
---- error
NotPrivate 0A000: this would return single private rows
LINE 2: SELECT a.id FROM w a JOIN w b USING (id) WHERE a.y = 2019 AND b.y = 2020 AND b.top > a.top ORDER BY 1
               ^
HINT:  Aggregate, for example: SELECT COUNT(*) FROM customer.

-- case: 74, how many customers' web grows
WITH w AS (SELECT c_customer_sk AS id, d_year AS y, MAX(ws_net_paid) AS top FROM customer JOIN web_sales ON c_customer_sk = ws_bill_customer_sk JOIN date_dim ON d_date_sk = ws_sold_date_sk GROUP BY 1, 2)
SELECT COUNT(*) AS n FROM w a JOIN w b USING (id) WHERE a.y = 2019 AND b.y = 2020 AND b.top > a.top

-- case: 75, brands by what stayed, this year and last
WITH everything AS (SELECT d_year, i_brand_id, SUM(kept) AS kept FROM (
    SELECT d_year, i_brand_id, cs_quantity - COALESCE(cr_return_quantity, 0) AS kept FROM catalog_sales JOIN item ON i_item_sk = cs_item_sk JOIN date_dim ON d_date_sk = cs_sold_date_sk
      LEFT JOIN catalog_returns ON cs_order_number = cr_order_number AND cs_item_sk = cr_item_sk WHERE i_category = 'Sports'
    UNION SELECT d_year, i_brand_id, ws_quantity - COALESCE(wr_return_quantity, 0) FROM web_sales JOIN item ON i_item_sk = ws_item_sk JOIN date_dim ON d_date_sk = ws_sold_date_sk
      LEFT JOIN web_returns ON ws_order_number = wr_order_number AND ws_item_sk = wr_item_sk WHERE i_category = 'Sports') x GROUP BY d_year, i_brand_id)
SELECT prev.i_brand_id, prev.kept AS before_, curr.kept AS now_ FROM everything curr, everything prev WHERE curr.i_brand_id = prev.i_brand_id AND curr.d_year = 2020 AND prev.d_year = 2019 ORDER BY 1
---- error
NotPrivate 0A000: UNION of private rows needs the privacy unit among the columns
LINE 2:     SELECT d_year, i_brand_id, cs_quantity - COALESCE(cr_return_quantity, 0) AS kept FROM catalog_sales JOIN item ON i_item_sk = cs_item_sk JOIN date_dim ON d_date_sk = cs_sold_date_sk
                   ^
DETAIL:  Equal rows of two units would become one.
HINT:  Add the unit's column in the same place on both sides, or write UNION ALL.

-- case: 75, brands by what stayed, all rows
WITH everything AS (SELECT d_year, i_brand_id, SUM(kept) AS kept FROM (
    SELECT d_year, i_brand_id, cs_quantity - COALESCE(cr_return_quantity, 0) AS kept FROM catalog_sales JOIN item ON i_item_sk = cs_item_sk JOIN date_dim ON d_date_sk = cs_sold_date_sk
      LEFT JOIN catalog_returns ON cs_order_number = cr_order_number AND cs_item_sk = cr_item_sk WHERE i_category = 'Sports'
    UNION ALL SELECT d_year, i_brand_id, ws_quantity - COALESCE(wr_return_quantity, 0) FROM web_sales JOIN item ON i_item_sk = ws_item_sk JOIN date_dim ON d_date_sk = ws_sold_date_sk
      LEFT JOIN web_returns ON ws_order_number = wr_order_number AND ws_item_sk = wr_item_sk WHERE i_category = 'Sports') x GROUP BY d_year, i_brand_id)
SELECT prev.i_brand_id, prev.kept AS before_, curr.kept AS now_ FROM everything curr, everything prev
WHERE curr.i_brand_id = prev.i_brand_id AND curr.d_year = 2020 AND prev.d_year = 2019 AND CAST(curr.kept AS DECIMAL(17, 2)) / CAST(prev.kept AS DECIMAL(17, 2)) < 1.5 ORDER BY now_ - before_, 1

-- case: 76, sales without a store, a promotion or a ship address
SELECT channel, col, d_year, i_category, COUNT(*) AS n, SUM(price) AS price FROM (
  SELECT 'store' AS channel, 'ss_store_sk' AS col, d_year, i_category, ss_ext_sales_price AS price FROM store_sales, item, date_dim WHERE ss_store_sk IS NULL AND ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk
  UNION ALL SELECT 'web', 'ws_promo_sk', d_year, i_category, ws_ext_sales_price FROM web_sales, item, date_dim WHERE ws_promo_sk IS NULL AND ws_sold_date_sk = d_date_sk AND ws_item_sk = i_item_sk
  UNION ALL SELECT 'catalog', 'cs_ship_customer_sk', d_year, i_category, cs_ext_sales_price FROM catalog_sales, item, date_dim WHERE cs_ship_customer_sk IS NULL AND cs_sold_date_sk = d_date_sk AND cs_item_sk = i_item_sk) foo
GROUP BY channel, col, d_year, i_category ORDER BY channel, col, d_year, i_category

-- case: 77, sales and returns of stores and centers with subtotals
WITH ss AS (SELECT s_store_sk, SUM(ss_net_paid) AS sales FROM store_sales, date_dim, store WHERE ss_sold_date_sk = d_date_sk AND d_year = 2020 AND ss_store_sk = s_store_sk GROUP BY s_store_sk),
sr AS (SELECT s_store_sk, SUM(sr_return_amt) AS returns_, SUM(sr_net_loss) AS loss FROM store_returns, date_dim, store WHERE sr_returned_date_sk = d_date_sk AND d_year = 2020 AND sr_store_sk = s_store_sk GROUP BY s_store_sk),
cs AS (SELECT cs_call_center_sk, SUM(cs_net_paid) AS sales FROM catalog_sales, date_dim WHERE cs_sold_date_sk = d_date_sk AND d_year = 2020 GROUP BY cs_call_center_sk),
cr AS (SELECT SUM(cr_return_amount) AS returns_, SUM(cr_net_loss) AS loss FROM catalog_returns, date_dim WHERE cr_returned_date_sk = d_date_sk AND d_year = 2020)
SELECT channel, id, SUM(sales) AS sales, SUM(returns_) AS returns_, SUM(loss) AS loss FROM (
  SELECT 'store' AS channel, ss.s_store_sk AS id, sales, COALESCE(returns_, 0) AS returns_, COALESCE(loss, 0) AS loss FROM ss LEFT JOIN sr ON ss.s_store_sk = sr.s_store_sk
  UNION ALL SELECT 'catalog', cs_call_center_sk, sales, returns_, loss FROM cs, cr) x GROUP BY ROLLUP (channel, id) ORDER BY channel NULLS LAST, id NULLS LAST

-- case: 78, customers' sales that nobody returned, per customer
WITH ws AS (SELECT d_year AS y, ws_item_sk AS item, ws_bill_customer_sk AS who, SUM(ws_quantity) AS q FROM web_sales LEFT JOIN web_returns ON wr_order_number = ws_order_number AND ws_item_sk = wr_item_sk JOIN date_dim ON ws_sold_date_sk = d_date_sk
  WHERE wr_order_number IS NULL GROUP BY d_year, ws_item_sk, ws_bill_customer_sk),
ss AS (SELECT d_year AS y, ss_item_sk AS item, ss_customer_sk AS who, SUM(ss_quantity) AS q FROM store_sales LEFT JOIN store_returns ON sr_ticket_number = ss_ticket_number AND ss_item_sk = sr_item_sk JOIN date_dim ON ss_sold_date_sk = d_date_sk
  WHERE sr_ticket_number IS NULL GROUP BY d_year, ss_item_sk, ss_customer_sk)
SELECT ss.who, ss.item, ROUND(ss.q / COALESCE(ws.q, 1), 2) AS ratio FROM ss LEFT JOIN ws ON ws.y = ss.y AND ws.item = ss.item AND ws.who = ss.who WHERE ss.y = 2020 ORDER BY 1, 2
---- error
NotPrivate 0A000: this would return single private rows
LINE 5: SELECT ss.who, ss.item, ROUND(ss.q / COALESCE(ws.q, 1), 2) AS ratio FROM ss LEFT JOIN ws ON ws.y = ss.y AND ws.item = ss.item AND ws.who = ss.who WHERE ss.y = 2020 ORDER BY 1, 2
               ^
HINT:  Aggregate, for example: SELECT COUNT(*) FROM store_sales.

-- case: 78, customers' sales that nobody returned, on average
WITH ws AS (SELECT d_year AS y, ws_bill_customer_sk AS who, SUM(ws_quantity) AS q FROM web_sales LEFT JOIN web_returns ON wr_order_number = ws_order_number AND ws_item_sk = wr_item_sk JOIN date_dim ON ws_sold_date_sk = d_date_sk
  WHERE wr_order_number IS NULL GROUP BY d_year, ws_bill_customer_sk),
ss AS (SELECT d_year AS y, ss_customer_sk AS who, SUM(ss_quantity) AS q FROM store_sales LEFT JOIN store_returns ON sr_ticket_number = ss_ticket_number AND ss_item_sk = sr_item_sk JOIN date_dim ON ss_sold_date_sk = d_date_sk
  WHERE sr_ticket_number IS NULL GROUP BY d_year, ss_customer_sk)
SELECT ss.y, COUNT(*) AS n, AVG(ss.q) AS q, COUNT(ws.q) AS web FROM ss LEFT JOIN ws ON ws.y = ss.y AND ws.who = ss.who WHERE COALESCE(ws.q, 0) < ss.q GROUP BY ss.y ORDER BY 1

-- case: 79, tickets of a store by name and profit
SELECT c_last_name, SUBSTR(s_city, 1, 5) AS city, ss_ticket_number, profit FROM (SELECT ss_ticket_number, ss_customer_sk, s_city, SUM(ss_net_profit) AS profit FROM store_sales, date_dim, store, household_demographics
  WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND ss_hdemo_sk = hd_demo_sk AND d_dow = 1 AND s_number_employees > 220 GROUP BY ss_ticket_number, ss_customer_sk, s_city) ms, customer WHERE ss_customer_sk = c_customer_sk ORDER BY 1, 2, 3
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT c_last_name, SUBSTR(s_city, 1, 5) AS city, ss_ticket_number, profit FROM (SELECT ss_ticket_number, ss_customer_sk, s_city, SUM(ss_net_profit) AS profit FROM store_sales, date_dim, store, household_demographics
               ^
HINT:  Aggregate, for example: SELECT c_last_name, COUNT(*) FROM customer GROUP BY c_last_name.

-- case: 80, promoted sales and their returns with subtotals
WITH ssr AS (SELECT s_store_id AS id, SUM(ss_ext_sales_price) AS sales, SUM(COALESCE(sr_return_amt, 0)) AS back, SUM(ss_net_profit - COALESCE(sr_net_loss, 0)) AS profit
  FROM store_sales LEFT OUTER JOIN store_returns ON ss_item_sk = sr_item_sk AND ss_ticket_number = sr_ticket_number, date_dim, store, item, promotion
  WHERE ss_sold_date_sk = d_date_sk AND d_year = 2020 AND ss_store_sk = s_store_sk AND ss_item_sk = i_item_sk AND i_current_price > 30 AND ss_promo_sk = p_promo_sk AND p_channel_tv = 'N' GROUP BY s_store_id),
wsr AS (SELECT web_site_id AS id, SUM(ws_ext_sales_price) AS sales, SUM(COALESCE(wr_return_amt, 0)) AS back, SUM(ws_net_profit - COALESCE(wr_net_loss, 0)) AS profit
  FROM web_sales LEFT OUTER JOIN web_returns ON ws_item_sk = wr_item_sk AND ws_order_number = wr_order_number, date_dim, web_site, item, promotion
  WHERE ws_sold_date_sk = d_date_sk AND d_year = 2020 AND ws_web_site_sk = web_site_sk AND ws_item_sk = i_item_sk AND i_current_price > 30 AND ws_promo_sk = p_promo_sk AND p_channel_tv = 'N' GROUP BY web_site_id)
SELECT channel, id, SUM(sales) AS sales, SUM(back) AS back, SUM(profit) AS profit FROM (SELECT 'store' AS channel, 'store' || id AS id, sales, back, profit FROM ssr UNION ALL SELECT 'web', 'site' || id, sales, back, profit FROM wsr) x
GROUP BY ROLLUP (channel, id) ORDER BY channel NULLS LAST, id NULLS LAST

-- case: 81, customers who return much by catalog
WITH back AS (SELECT cr_returning_customer_sk AS who, ca_state AS state, SUM(cr_return_amount) AS amount FROM catalog_returns, date_dim, customer_address
  WHERE cr_returned_date_sk = d_date_sk AND d_year = 2020 AND cr_returning_addr_sk = ca_address_sk GROUP BY cr_returning_customer_sk, ca_state)
SELECT c_customer_id, amount FROM back b1, customer WHERE amount > (SELECT AVG(amount) * 1.2 FROM back b2 WHERE b1.state = b2.state) AND b1.who = c_customer_sk ORDER BY 1
---- error
NotPrivate 0A000: this would return single private rows
LINE 3: SELECT c_customer_id, amount FROM back b1, customer WHERE amount > (SELECT AVG(amount) * 1.2 FROM back b2 WHERE b1.state = b2.state) AND b1.who = c_customer_sk ORDER BY 1
               ^
HINT:  Aggregate, for example: SELECT COUNT(*) FROM customer.

-- case: 81, how many return much by catalog
WITH back AS (SELECT cs_bill_customer_sk AS who, ca_state AS state, SUM(cr_return_amount) AS amount FROM catalog_returns JOIN catalog_sales ON cr_item_sk = cs_item_sk AND cr_order_number = cs_order_number, date_dim, customer_address
  WHERE cr_returned_date_sk = d_date_sk AND d_year = 2020 AND cr_returning_addr_sk = ca_address_sk GROUP BY cs_bill_customer_sk, ca_state)
SELECT COUNT(*) AS n, AVG(amount) AS mean FROM back b1, customer WHERE amount > (SELECT AVG(amount) * 1.2 FROM back b2 WHERE b1.state = b2.state) AND b1.who = c_customer_sk AND c_birth_year < 1980

-- case: 82, items in stock that stores sold
SELECT i_item_id, i_current_price FROM item, inventory, date_dim, store_sales WHERE i_current_price BETWEEN 10 AND 40 AND inv_item_sk = i_item_sk AND d_date_sk = inv_date_sk AND d_date BETWEEN DATE '2019-05-25' AND DATE '2019-07-24'
  AND i_manufact_id IN (2, 3, 5, 7, 11, 13, 17, 19, 23, 29) AND inv_quantity_on_hand BETWEEN 100 AND 500 AND ss_item_sk = i_item_sk GROUP BY i_item_id, i_current_price ORDER BY i_item_id

-- case: 83, what came back of a brand on some weeks' days
WITH sr AS (SELECT i_brand AS brand, SUM(sr_return_quantity) AS q FROM store_returns, item, date_dim WHERE sr_item_sk = i_item_sk AND sr_returned_date_sk = d_date_sk
    AND d_date IN (SELECT d_date FROM date_dim WHERE d_week_seq IN (SELECT d_week_seq FROM date_dim WHERE d_date IN (DATE '2020-01-14', DATE '2020-06-23', DATE '2020-11-17'))) GROUP BY i_brand),
wr AS (SELECT i_brand AS brand, SUM(wr_return_quantity) AS q FROM web_returns, item, date_dim WHERE wr_item_sk = i_item_sk AND wr_returned_date_sk = d_date_sk
    AND d_date IN (SELECT d_date FROM date_dim WHERE d_week_seq IN (SELECT d_week_seq FROM date_dim WHERE d_date IN (DATE '2020-01-14', DATE '2020-06-23', DATE '2020-11-17'))) GROUP BY i_brand)
SELECT sr.brand, sr.q AS store, wr.q AS web, sr.q * 100.0 / (sr.q + wr.q) AS part FROM sr, wr WHERE sr.brand = wr.brand AND sr.q > 0 AND wr.q > 0 ORDER BY sr.brand

-- case: 84, names of a city's customers with returns
SELECT c_customer_id, COALESCE(c_last_name, '') || ', ' || COALESCE(c_first_name, '') AS name FROM customer, customer_address, customer_demographics, household_demographics, income_band, store_returns
WHERE ca_city = 'Salem' AND c_current_addr_sk = ca_address_sk AND ib_lower_bound >= 20000 AND ib_upper_bound <= 70000 AND ib_income_band_sk = hd_income_band_sk AND cd_demo_sk = c_current_cdemo_sk
  AND hd_demo_sk = c_current_hdemo_sk AND sr_cdemo_sk = cd_demo_sk ORDER BY c_customer_id
---- error
NotPrivate 0A000: a join of private rows must equate their privacy units
LINE 1: SELECT c_customer_id, COALESCE(c_last_name, '') || ', ' || COALESCE(c_first_name, '') AS name FROM customer, customer_address, customer_demographics, household_demographics, income_band, store_returns
                                                                                                                                                                                                   ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join along the foreign keys that the schema declares.

-- case: 85, reasons of returns by demographics of two people
SELECT SUBSTR(r_reason_desc, 1, 9) AS reason, AVG(ws_quantity) AS q, AVG(wr_refunded_cash) AS cash, AVG(wr_fee) AS fee FROM web_sales, web_returns, web_page, customer_demographics cd1, customer_demographics cd2, customer_address, date_dim, reason
WHERE ws_web_page_sk = wp_web_page_sk AND ws_item_sk = wr_item_sk AND ws_order_number = wr_order_number AND ws_sold_date_sk = d_date_sk AND d_year = 2020 AND cd1.cd_demo_sk = wr_refunded_cdemo_sk AND cd2.cd_demo_sk = wr_returning_cdemo_sk
  AND ca_address_sk = wr_refunded_addr_sk AND r_reason_sk = wr_reason_sk AND ((cd1.cd_marital_status = 'M' AND ws_sales_price < 150) OR (cd1.cd_gender = cd2.cd_gender AND ws_sales_price >= 50))
  AND ((ca_state IN ('AK', 'ME') AND ws_net_profit > -5000) OR (ca_state IN ('UT') AND ws_net_profit < 6000)) GROUP BY r_reason_desc ORDER BY 1, 2

-- case: 86, web totals ranked within their level
SELECT SUM(ws_net_paid) AS total, i_category, i_color, GROUPING(i_category) + GROUPING(i_color) AS level, RANK() OVER (PARTITION BY GROUPING(i_category) + GROUPING(i_color), CASE WHEN GROUPING(i_color) = 0 THEN i_category END ORDER BY SUM(ws_net_paid) DESC) AS place
FROM web_sales, date_dim d1, item WHERE d1.d_month_seq BETWEEN 1440 AND 1451 AND d1.d_date_sk = ws_sold_date_sk AND i_item_sk = ws_item_sk GROUP BY ROLLUP (i_category, i_color) ORDER BY level DESC, CASE WHEN level = 0 THEN i_category END, place

-- case: 87, store customers of a day that no other channel saw
SELECT COUNT(*) AS n FROM (
  (SELECT DISTINCT c_last_name, c_first_name, d_date FROM store_sales, date_dim, customer WHERE ss_sold_date_sk = d_date_sk AND ss_customer_sk = c_customer_sk AND d_moy = 5)
  EXCEPT (SELECT DISTINCT c_last_name, c_first_name, d_date FROM web_sales, date_dim, customer WHERE ws_sold_date_sk = d_date_sk AND ws_bill_customer_sk = c_customer_sk AND d_moy = 5)) cool
---- error
Unsupported 0A000: EXCEPT of keys that must be selected cannot be counted
LINE 2:   (SELECT DISTINCT c_last_name, c_first_name, d_date FROM store_sales, date_dim, customer WHERE ss_sold_date_sk = d_date_sk AND ss_customer_sk = c_customer_sk AND d_moy = 5)
                           ^
DETAIL:  Keys that few units have are left out of each side, so the number would be wrong.
HINT:  Add the privacy unit's column in the same place on both sides, so that rows of each unit are compared, or join the public table that lists the keys.

-- case: 87, store customers of a day that no other channel saw, by their key
SELECT COUNT(*) AS n FROM (
  (SELECT DISTINCT ss_customer_sk, d_moy FROM store_sales, date_dim WHERE ss_sold_date_sk = d_date_sk AND d_year = 2020)
  EXCEPT (SELECT DISTINCT ws_bill_customer_sk, d_moy FROM web_sales, date_dim WHERE ws_sold_date_sk = d_date_sk AND d_year = 2020)
  EXCEPT (SELECT DISTINCT cs_bill_customer_sk, d_moy FROM catalog_sales, date_dim WHERE cs_sold_date_sk = d_date_sk AND d_year = 2020)) cool

-- case: 88, half hours side by side
SELECT * FROM
  (SELECT COUNT(*) AS h9 FROM store_sales, household_demographics, time_dim, store WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 9 AND t_minute < 30
    AND ((hd_dep_count = 3 AND hd_vehicle_count <= 5) OR (hd_dep_count = 1 AND hd_vehicle_count <= 3)) AND s_store_name = 'ese') s1,
  (SELECT COUNT(*) AS h10 FROM store_sales, household_demographics, time_dim, store WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 10 AND t_minute >= 30
    AND ((hd_dep_count = 3 AND hd_vehicle_count <= 5) OR (hd_dep_count = 1 AND hd_vehicle_count <= 3)) AND s_store_name = 'ese') s2

-- case: 90, mornings against evenings of the web
SELECT CAST(am AS DECIMAL(15, 4)) / CAST(pm AS DECIMAL(15, 4)) AS ratio FROM
  (SELECT COUNT(*) AS am FROM web_sales, household_demographics, time_dim, web_page WHERE ws_sold_time_sk = t_time_sk AND ws_ship_hdemo_sk = hd_demo_sk AND ws_web_page_sk = wp_web_page_sk AND t_hour BETWEEN 7 AND 10 AND hd_dep_count < 4 AND wp_char_count > 4000) a,
  (SELECT COUNT(*) AS pm FROM web_sales, household_demographics, time_dim, web_page WHERE ws_sold_time_sk = t_time_sk AND ws_ship_hdemo_sk = hd_demo_sk AND ws_web_page_sk = wp_web_page_sk AND t_hour BETWEEN 18 AND 21 AND hd_dep_count < 4 AND wp_char_count > 4000) p

-- case: 91, losses of call centers, by who returns
SELECT cc_name, SUM(cr_net_loss) AS loss FROM call_center, catalog_returns, customer WHERE cr_call_center_sk = cc_call_center_sk AND cr_returning_customer_sk = c_customer_sk AND c_birth_month < 6 GROUP BY cc_name ORDER BY 1
---- error
NotPrivate 0A000: a join of private rows must equate their privacy units
LINE 1: SELECT cc_name, SUM(cr_net_loss) AS loss FROM call_center, catalog_returns, customer WHERE cr_call_center_sk = cc_call_center_sk AND cr_returning_customer_sk = c_customer_sk AND c_birth_month < 6 GROUP BY cc_name ORDER BY 1
                                                                                    ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join along the foreign keys that the schema declares.

-- case: 92, web discounts above what is usual for the item
SELECT SUM(ws_ext_discount_amt) AS excess FROM web_sales, item, date_dim WHERE i_manufact_id < 15 AND i_item_sk = ws_item_sk AND d_date BETWEEN DATE '2020-01-27' AND DATE '2020-12-27' AND d_date_sk = ws_sold_date_sk
  AND ws_ext_discount_amt > (SELECT 1.2 * AVG(ws_ext_discount_amt) FROM web_sales, date_dim WHERE ws_item_sk = i_item_sk AND d_date BETWEEN DATE '2020-01-27' AND DATE '2020-12-27' AND d_date_sk = ws_sold_date_sk)

-- case: 93, what each customer kept
SELECT ss_customer_sk, SUM(act) AS total FROM (SELECT ss_customer_sk, CASE WHEN sr_return_quantity IS NOT NULL THEN (ss_quantity - sr_return_quantity) * ss_sales_price ELSE ss_quantity * ss_sales_price END AS act
  FROM store_sales LEFT OUTER JOIN store_returns ON sr_item_sk = ss_item_sk AND sr_ticket_number = ss_ticket_number, reason WHERE sr_reason_sk = r_reason_sk AND r_reason_desc = 'broken') t GROUP BY ss_customer_sk ORDER BY total, 1
---- error
NotPrivate 0A000: grouping by the privacy unit would return a row for each unit
LINE 2:   FROM store_sales LEFT OUTER JOIN store_returns ON sr_item_sk = ss_item_sk AND sr_ticket_number = ss_ticket_number, reason WHERE sr_reason_sk = r_reason_sk AND r_reason_desc = 'broken') t GROUP BY ss_customer_sk ORDER BY total, 1
                                                                                                                                                                                                              ^
DETAIL:  Each such group holds one unit, and no group of one may appear in an answer.
HINT:  Aggregate once more: SELECT COUNT(*), AVG(n) FROM (SELECT …, COUNT(*) AS n … GROUP BY …) AS t.

-- case: 93, what customers kept, on average
SELECT AVG(total) AS mean FROM (SELECT ss_customer_sk, SUM(act) AS total FROM (SELECT ss_customer_sk, CASE WHEN sr_return_quantity IS NOT NULL THEN (ss_quantity - sr_return_quantity) * ss_sales_price ELSE ss_quantity * ss_sales_price END AS act
  FROM store_sales LEFT OUTER JOIN store_returns ON sr_item_sk = ss_item_sk AND sr_ticket_number = ss_ticket_number, reason WHERE sr_reason_sk = r_reason_sk AND r_reason_desc = 'broken') t GROUP BY ss_customer_sk) u

-- case: 94, web orders from two warehouses of which nothing came back
SELECT COUNT(DISTINCT ws_order_number) AS orders, SUM(ws_ext_ship_cost) AS ship, SUM(ws_net_profit) AS profit FROM web_sales ws1, date_dim, customer_address, web_site
WHERE d_date BETWEEN DATE '2019-02-01' AND DATE '2020-12-01' AND ws1.ws_ship_date_sk = d_date_sk AND ws1.ws_ship_addr_sk = ca_address_sk AND ca_state IN ('AK', 'UT') AND ws1.ws_web_site_sk = web_site_sk AND web_company_name IN ('pri', 'bar')
  AND EXISTS (SELECT * FROM web_sales ws2 WHERE ws1.ws_order_number = ws2.ws_order_number AND ws1.ws_warehouse_sk <> ws2.ws_warehouse_sk)
  AND NOT EXISTS (SELECT * FROM web_returns wr1 WHERE ws1.ws_order_number = wr1.wr_order_number)

-- case: 95, web orders from two warehouses of which something came back
-- xfail: an engine may try all pairs of IN, where there are NULLs, so it counts as two more joins and is refused
WITH two AS (SELECT ws1.ws_order_number, ws1.ws_warehouse_sk AS wh1, ws2.ws_warehouse_sk AS wh2 FROM web_sales ws1, web_sales ws2 WHERE ws1.ws_order_number = ws2.ws_order_number AND ws1.ws_warehouse_sk <> ws2.ws_warehouse_sk)
SELECT COUNT(DISTINCT ws_order_number) AS orders, SUM(ws_net_paid) AS paid FROM web_sales ws1, date_dim, customer_address
WHERE d_date BETWEEN DATE '2019-02-01' AND DATE '2021-12-01' AND ws1.ws_ship_date_sk = d_date_sk AND ws1.ws_ship_addr_sk = ca_address_sk AND ca_state IN ('ME', 'VT')
  AND ws1.ws_order_number IN (SELECT ws_order_number FROM two) AND ws1.ws_order_number IN (SELECT wr_order_number FROM web_returns, two WHERE wr_order_number = two.ws_order_number)

-- case: 96, a count at an hour
SELECT COUNT(*) AS n FROM store_sales, household_demographics, time_dim, store WHERE ss_sold_time_sk = time_dim.t_time_sk AND ss_hdemo_sk = household_demographics.hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 16 AND t_minute < 45 AND hd_dep_count = 2 AND s_state = 'ME' ORDER BY COUNT(*) LIMIT 10

-- case: 97, pairs of customer and item in one channel or both
WITH ssci AS (SELECT ss_customer_sk AS who, ss_item_sk AS what FROM store_sales, date_dim WHERE ss_sold_date_sk = d_date_sk AND d_month_seq BETWEEN 1436 AND 1451 GROUP BY ss_customer_sk, ss_item_sk),
csci AS (SELECT cs_bill_customer_sk AS who, cs_item_sk AS what FROM catalog_sales, date_dim WHERE cs_sold_date_sk = d_date_sk AND d_month_seq BETWEEN 1436 AND 1451 GROUP BY cs_bill_customer_sk, cs_item_sk)
SELECT SUM(CASE WHEN ssci.who IS NOT NULL AND csci.who IS NULL THEN 1 ELSE 0 END) AS store_only, SUM(CASE WHEN ssci.who IS NULL AND csci.who IS NOT NULL THEN 1 ELSE 0 END) AS catalog_only,
  SUM(CASE WHEN ssci.who IS NOT NULL AND csci.who IS NOT NULL THEN 1 ELSE 0 END) AS both_ FROM ssci FULL OUTER JOIN csci ON ssci.who = csci.who AND ssci.what = csci.what

-- case: 98, what a class has of the store sales of its category
SELECT i_category, i_class, i_color, SUM(ss_net_paid) AS paid, SUM(ss_net_paid) * 100 / SUM(SUM(ss_net_paid)) OVER (PARTITION BY i_class) AS share FROM store_sales, item, date_dim
WHERE ss_item_sk = i_item_sk AND i_category IN ('Shoes', 'Sports') AND ss_sold_date_sk = d_date_sk AND d_date BETWEEN CAST('2020-01-12' AS DATE) AND (CAST('2020-01-12' AS DATE) + INTERVAL '90' DAY)
GROUP BY i_category, i_class, i_color ORDER BY i_category, i_class, i_color, share

-- case: 99, days until the catalog ships
SELECT SUBSTR(w_warehouse_name, 1, 8) AS depot, sm_type, cc_name, SUM(CASE WHEN cs_ship_date_sk - cs_sold_date_sk <= 50 THEN 1 ELSE 0 END) AS d50, SUM(CASE WHEN cs_ship_date_sk - cs_sold_date_sk > 50 AND cs_ship_date_sk - cs_sold_date_sk <= 90 THEN 1 ELSE 0 END) AS d90
FROM catalog_sales, warehouse, ship_mode, call_center, date_dim WHERE d_month_seq BETWEEN 1440 AND 1451 AND cs_ship_date_sk = d_date_sk AND cs_warehouse_sk = w_warehouse_sk AND cs_ship_mode_sk = sm_ship_mode_sk AND cs_call_center_sk = cc_call_center_sk
GROUP BY SUBSTR(w_warehouse_name, 1, 8), sm_type, cc_name ORDER BY 1, 2, 3
