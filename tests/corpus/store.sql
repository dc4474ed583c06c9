-- Two years of a few stores: sales with two to five lines each, a tenth of them returned, and the orders of a web shop.
CREATE TABLE item AS SELECT (i + 1)::INTEGER AS it_id, ['books', 'garden', 'music', 'shoes', 'toys'][mix(i, 1, 5)::INTEGER + 1] AS it_kind,
  'brand ' || (1 + mix(i, 2, 12)) AS it_brand, (2 + mix(i, 3, 9800) / 100)::DECIMAL(9, 2) AS it_price FROM range(120) t(i);
CREATE TABLE store AS SELECT (i + 1)::INTEGER AS st_id, ['able', 'bar', 'cable', 'eing', 'fjord', 'quay'][i + 1] AS st_name,
  ['North', 'North', 'South', 'West', 'West', 'West'][i + 1] AS st_county FROM range(6) t(i);
CREATE TABLE calendar AS SELECT (i + 1)::INTEGER AS ca_day, DATE '2022-01-01' + i::INTEGER AS ca_date, year(DATE '2022-01-01' + i::INTEGER)::INTEGER AS ca_year,
  month(DATE '2022-01-01' + i::INTEGER)::INTEGER AS ca_month, (i // 7)::INTEGER AS ca_week FROM range(730) t(i);
CREATE TABLE stock AS SELECT (i + 1)::INTEGER AS so_item, (w + 1)::INTEGER AS so_warehouse, mix(i * 4 + w, 5, 400)::INTEGER AS so_onhand
FROM range(120) t(i), range(4) u(w) WHERE mix(i * 4 + w, 6, 10) > 0;

CREATE TABLE shopper AS SELECT (i + 1)::INTEGER AS sh_id, ['Bergen', 'Oslo', 'Tromsø'][mix(i, 10, 3)::INTEGER + 1] AS sh_city,
  (1930 + mix(i, 11, 75))::INTEGER AS sh_born FROM range(400) t(i);
CREATE TABLE sales AS
WITH tickets AS (SELECT (t + 1)::INTEGER AS ticket, t FROM range(2500) s(t)),
lines AS (SELECT ticket, t, n, t * 8 + n AS i FROM tickets, range(5) u(n) WHERE n <= 1 + mix(t, 20, 4))
SELECT ticket AS sa_ticket, (1 + (mix(t, 21, 120) + n * 7) % 118)::INTEGER AS sa_item, (1 + mix(t, 22, 400))::INTEGER AS sa_shopper,
  (1 + mix(t, 23, 6))::INTEGER AS sa_store, (1 + mix(t, 24, 730))::INTEGER AS sa_day, (1 + mix(i, 25, 100))::INTEGER AS sa_quantity,
  (1 + mix(i, 26, 30000) / 100)::DECIMAL(9, 2) AS sa_price, (mix(i, 27, 40000) / 100 - 150)::DECIMAL(9, 2) AS sa_profit FROM lines;
-- Some returns name no sale, or half of one: they are nobody's.
CREATE TABLE returned AS
SELECT sa_ticket AS re_ticket, sa_item AS re_item, sa_store AS re_store, (sa_day + 1 + mix(sa_ticket * 8 + sa_item, 30, 28))::INTEGER AS re_day,
  (1 + mix(sa_ticket * 8 + sa_item, 31, sa_quantity::BIGINT))::INTEGER AS re_quantity, (sa_price / 2)::DECIMAL(9, 2) AS re_amount
FROM sales WHERE mix(sa_ticket * 128 + sa_item, 32, 9) = 0;
INSERT INTO returned SELECT CASE i % 3 WHEN 0 THEN NULL ELSE 9000 + i END, CASE i % 3 WHEN 1 THEN NULL ELSE 1 + i END, 1, 5, 3, 20 FROM range(30) t(i);
CREATE TABLE web_lines AS
WITH orders AS (SELECT (o + 1)::INTEGER AS number, o FROM range(1500) s(o)),
lines AS (SELECT number, o, n, o * 4 + n AS i FROM orders, range(3) u(n) WHERE n <= mix(o, 40, 3))
SELECT number AS we_order, (1 + (mix(o, 41, 120) + n * 11) % 119)::INTEGER AS we_item, (1 + mix(o, 42, 400))::INTEGER AS we_shopper,
  (1 + mix(i, 43, 4))::INTEGER AS we_warehouse, (1 + mix(o, 44, 730))::INTEGER AS we_day, (1 + mix(i, 45, 100))::INTEGER AS we_quantity,
  (mix(i, 46, 9000) / 100)::DECIMAL(9, 2) AS we_cost FROM lines;
CREATE TABLE web_returned AS SELECT we_order AS wr_order, we_item AS wr_item, (we_cost * 2)::DECIMAL(9, 2) AS wr_amount
FROM web_lines WHERE mix(we_order * 128 + we_item, 50, 7) = 0;
INSERT INTO web_returned SELECT 5000 + i, 1 + i, 10 FROM range(10) t(i);
