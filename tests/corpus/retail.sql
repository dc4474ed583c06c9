-- Three years of a retailer with stores, a catalog and a web shop, in the shape of TPC-DS: the tables and names of its schema, our rows.
CREATE TABLE date_dim AS SELECT (10000 + i)::INTEGER AS d_date_sk, DATE '2019-01-01' + i::INTEGER AS d_date,
  year(DATE '2019-01-01' + i::INTEGER)::INTEGER AS d_year, month(DATE '2019-01-01' + i::INTEGER)::INTEGER AS d_moy,
  day(DATE '2019-01-01' + i::INTEGER)::INTEGER AS d_dom, dayofweek(DATE '2019-01-01' + i::INTEGER)::INTEGER AS d_dow,
  quarter(DATE '2019-01-01' + i::INTEGER)::INTEGER AS d_qoy,
  ((year(DATE '2019-01-01' + i::INTEGER) - 1900) * 12 + month(DATE '2019-01-01' + i::INTEGER) - 1)::INTEGER AS d_month_seq,
  ((i + 1) // 7 + 6200)::INTEGER AS d_week_seq, dayname(DATE '2019-01-01' + i::INTEGER) AS d_day_name,
  year(DATE '2019-01-01' + i::INTEGER) || 'Q' || quarter(DATE '2019-01-01' + i::INTEGER) AS d_quarter_name
FROM range(1096) t(i);
CREATE TABLE time_dim AS SELECT i::INTEGER AS t_time_sk, (i // 60)::INTEGER AS t_hour, (i % 60)::INTEGER AS t_minute,
  CASE WHEN i // 60 IN (6, 7, 8) THEN 'breakfast' WHEN i // 60 IN (17, 18, 19) THEN 'dinner' END AS t_meal_time FROM range(1440) t(i);
CREATE TABLE item AS SELECT (i + 1)::INTEGER AS i_item_sk, 'ITEM' || lpad((i // 2)::VARCHAR, 6, '0') AS i_item_id,
  'goods number ' || mix(i, 1, 900) AS i_item_desc, ['Books', 'Home', 'Music', 'Shoes', 'Sports'][mix(i, 2, 5)::INTEGER + 1] AS i_category,
  ['alpha', 'beta', 'gamma'][mix(i, 3, 3)::INTEGER + 1] AS i_class, 'brand #' || (1 + mix(i, 4, 15)) AS i_brand,
  (1 + mix(i, 4, 15))::INTEGER AS i_brand_id, (1 + mix(i, 5, 40))::INTEGER AS i_manufact_id, (1 + mix(i, 6, 25))::INTEGER AS i_manager_id,
  (1 + mix(i, 7, 9900) / 100)::DECIMAL(7, 2) AS i_current_price, (1 + mix(i, 8, 5000) / 100)::DECIMAL(7, 2) AS i_wholesale_cost,
  ['red', 'plum', 'navy', 'mint', 'gold', 'rose'][mix(i, 9, 6)::INTEGER + 1] AS i_color, ['small', 'medium', 'large'][mix(i, 10, 3)::INTEGER + 1] AS i_size
FROM range(1200) t(i);
CREATE TABLE store AS SELECT (i + 1)::INTEGER AS s_store_sk, 'ST' || (i // 2) AS s_store_id, ['ought', 'able', 'pri', 'ese', 'anti'][i % 5 + 1] AS s_store_name,
  ['AK', 'AK', 'ME', 'ME', 'UT', 'VT'][i % 6 + 1] AS s_state, ['Barrow', 'Juneau', 'Knox', 'Waldo', 'Kane', 'Essex'][i % 6 + 1] AS s_county,
  ['Fairview', 'Midway', 'Oakland'][i % 3 + 1] AS s_city, (10000 + 137 * i)::VARCHAR AS s_zip, (1 + i % 4)::INTEGER AS s_market_id,
  (200 + 10 * i)::INTEGER AS s_number_employees, (-5 - i % 2)::DECIMAL(5, 2) AS s_gmt_offset FROM range(12) t(i);
CREATE TABLE warehouse AS SELECT (i + 1)::INTEGER AS w_warehouse_sk, ['North gate depot', 'Long river hall', 'Old town shed', 'Harbor store', 'Hill'][i + 1] AS w_warehouse_name,
  ['AK', 'ME', 'UT', 'ME', 'VT'][i + 1] AS w_state, (40000 + 9000 * i)::INTEGER AS w_warehouse_sq_ft FROM range(5) t(i);
CREATE TABLE ship_mode AS SELECT (i + 1)::INTEGER AS sm_ship_mode_sk, ['EXPRESS', 'OVERNIGHT', 'REGULAR', 'LIBRARY'][i % 4 + 1] AS sm_type,
  ['FEDEX', 'POST', 'TBS'][i % 3 + 1] AS sm_carrier FROM range(12) t(i);
CREATE TABLE reason AS SELECT (i + 1)::INTEGER AS r_reason_sk, ['too big', 'too small', 'broken', 'wrong color', 'late', 'unwanted'][i + 1] AS r_reason_desc FROM range(6) t(i);
CREATE TABLE promotion AS SELECT (i + 1)::INTEGER AS p_promo_sk, CASE WHEN mix(i, 11, 2) = 0 THEN 'Y' ELSE 'N' END AS p_channel_email,
  CASE WHEN mix(i, 12, 2) = 0 THEN 'Y' ELSE 'N' END AS p_channel_dmail, CASE WHEN mix(i, 13, 3) = 0 THEN 'Y' ELSE 'N' END AS p_channel_tv,
  CASE WHEN mix(i, 14, 4) = 0 THEN 'Y' ELSE 'N' END AS p_channel_event FROM range(30) t(i);
CREATE TABLE web_site AS SELECT (i + 1)::INTEGER AS web_site_sk, 'WEB' || (i // 2) AS web_site_id, 'site_' || (i // 2) AS web_name, ['pri', 'able', 'bar', 'ought'][i + 1] AS web_company_name FROM range(4) t(i);
CREATE TABLE web_page AS SELECT (i + 1)::INTEGER AS wp_web_page_sk, (3000 + 500 * i)::INTEGER AS wp_char_count FROM range(12) t(i);
CREATE TABLE call_center AS SELECT (i + 1)::INTEGER AS cc_call_center_sk, 'CC' || i AS cc_call_center_id, ['Mid', 'North', 'West'][i + 1] AS cc_name,
  ['Ann', 'Bob', 'Cid'][i + 1] AS cc_manager, ['Barrow', 'Knox', 'Kane'][i + 1] AS cc_county FROM range(3) t(i);
CREATE TABLE catalog_page AS SELECT (i + 1)::INTEGER AS cp_catalog_page_sk, 'CP' || (i // 2) AS cp_catalog_page_id FROM range(20) t(i);
CREATE TABLE customer_address AS SELECT (i + 1)::INTEGER AS ca_address_sk, ['Fairview', 'Midway', 'Oakland', 'Salem'][mix(i, 20, 4)::INTEGER + 1] AS ca_city,
  ['Barrow', 'Juneau', 'Knox', 'Waldo', 'Kane', 'Essex'][mix(i, 21, 6)::INTEGER + 1] AS ca_county, ['AK', 'ME', 'UT', 'VT'][mix(i, 22, 4)::INTEGER + 1] AS ca_state,
  (10000 + 137 * mix(i, 23, 40))::VARCHAR AS ca_zip, 'United States' AS ca_country, (-5 - mix(i, 24, 2))::DECIMAL(5, 2) AS ca_gmt_offset,
  ['apartment', 'condo', 'single family'][mix(i, 25, 3)::INTEGER + 1] AS ca_location_type FROM range(1100) t(i);
CREATE TABLE customer_demographics AS SELECT (i + 1)::INTEGER AS cd_demo_sk, ['F', 'M'][i % 2 + 1] AS cd_gender, ['D', 'M', 'S', 'U', 'W'][i // 2 % 5 + 1] AS cd_marital_status,
  ['College', 'Primary', 'Secondary', 'Unknown'][i // 10 % 4 + 1] AS cd_education_status, (500 + 500 * (i // 40 % 5))::INTEGER AS cd_purchase_estimate,
  ['Good', 'High Risk', 'Low Risk'][i // 200 % 3 + 1] AS cd_credit_rating, (i // 600)::INTEGER AS cd_dep_count FROM range(1200) t(i);
CREATE TABLE household_demographics AS SELECT (i + 1)::INTEGER AS hd_demo_sk, (1 + i % 8)::INTEGER AS hd_income_band_sk,
  ['0-500', '501-1000', '>10000', 'Unknown'][i // 8 % 4 + 1] AS hd_buy_potential, (i // 32 % 5)::INTEGER AS hd_dep_count, (i // 160 - 1)::INTEGER AS hd_vehicle_count FROM range(640) t(i);
CREATE TABLE income_band AS SELECT (i + 1)::INTEGER AS ib_income_band_sk, (10000 * i)::INTEGER AS ib_lower_bound, (10000 * (i + 1))::INTEGER AS ib_upper_bound FROM range(8) t(i);
CREATE TABLE inventory AS SELECT (10000 + 14 * w + 3)::INTEGER AS inv_date_sk, (1 + p * 3)::INTEGER AS inv_item_sk, (1 + h)::INTEGER AS inv_warehouse_sk,
  mix((w * 100 + p) * 5 + h, 30, 900)::INTEGER AS inv_quantity_on_hand FROM range(60) t(w), range(60) u(p), range(5) v(h) WHERE mix((w * 100 + p) * 5 + h, 31, 6) > 0;

CREATE TABLE customer AS SELECT (i + 1)::INTEGER AS c_customer_sk, 'CUST' || lpad(i::VARCHAR, 6, '0') AS c_customer_id, (1 + mix(i, 40, 1100))::INTEGER AS c_current_addr_sk,
  (1 + mix(i, 41, 1200))::INTEGER AS c_current_cdemo_sk, (1 + mix(i, 42, 640))::INTEGER AS c_current_hdemo_sk,
  ['Ada', 'Ben', 'Cleo', 'Dan', 'Eve', 'Finn'][mix(i, 43, 6)::INTEGER + 1] AS c_first_name, ['Moe', 'Noor', 'Ode', 'Pohl', 'Quist'][mix(i, 44, 5)::INTEGER + 1] AS c_last_name,
  (1930 + mix(i, 45, 70))::INTEGER AS c_birth_year, (1 + mix(i, 46, 12))::INTEGER AS c_birth_month, ['CHAD', 'FIJI', 'MALI', 'PERU'][mix(i, 47, 4)::INTEGER + 1] AS c_birth_country,
  CASE WHEN mix(i, 48, 2) = 0 THEN 'Y' ELSE 'N' END AS c_preferred_cust_flag FROM range(500) t(i);

-- A sale names no store, or no promotion, here and there, and some sales are nobody's.
CREATE TABLE store_sales AS
WITH lines AS (SELECT t + 1 AS ticket, t, n, t * 8 + n AS i FROM range(3000) s(t), range(5) u(n) WHERE n <= mix(t, 50, 5))
SELECT (10000 + mix(t, 51, 1090))::INTEGER AS ss_sold_date_sk, mix(t, 52, 1440)::INTEGER AS ss_sold_time_sk, (1 + (mix(t, 53, 240) * 5 + n * 7) % 1200)::INTEGER AS ss_item_sk,
  CASE WHEN mix(t, 54, 80) > 0 THEN 1 + mix(t, 55, 500) END::INTEGER AS ss_customer_sk, (1 + mix(t, 56, 1200))::INTEGER AS ss_cdemo_sk, (1 + mix(t, 57, 640))::INTEGER AS ss_hdemo_sk,
  (1 + mix(t, 58, 1100))::INTEGER AS ss_addr_sk, CASE WHEN mix(t, 59, 40) > 0 THEN 1 + mix(t, 60, 12) END::INTEGER AS ss_store_sk,
  CASE WHEN mix(i, 61, 20) > 0 THEN 1 + mix(i, 62, 30) END::INTEGER AS ss_promo_sk, ticket::INTEGER AS ss_ticket_number, (1 + mix(i, 63, 100))::INTEGER AS ss_quantity,
  (1 + mix(i, 64, 10000) / 100)::DECIMAL(7, 2) AS ss_wholesale_cost, (1 + mix(i, 65, 20000) / 100)::DECIMAL(7, 2) AS ss_list_price, (mix(i, 66, 20000) / 100)::DECIMAL(7, 2) AS ss_sales_price,
  (mix(i, 67, 100000) / 100)::DECIMAL(7, 2) AS ss_ext_discount_amt, (mix(i, 68, 2000000) / 100)::DECIMAL(7, 2) AS ss_ext_sales_price,
  (mix(i, 69, 50000) / 100)::DECIMAL(7, 2) AS ss_coupon_amt, (mix(i, 70, 2000000) / 100)::DECIMAL(7, 2) AS ss_net_paid, (mix(i, 71, 2000000) / 100 - 10000)::DECIMAL(7, 2) AS ss_net_profit FROM lines;
CREATE TABLE store_returns AS SELECT (ss_sold_date_sk + 1 + mix(ss_ticket_number * 8 + ss_item_sk, 80, 140))::INTEGER AS sr_returned_date_sk, ss_item_sk AS sr_item_sk,
  ss_customer_sk AS sr_customer_sk, ss_cdemo_sk AS sr_cdemo_sk, ss_store_sk AS sr_store_sk, (1 + mix(ss_ticket_number * 8 + ss_item_sk, 81, 6))::INTEGER AS sr_reason_sk,
  ss_ticket_number AS sr_ticket_number, (1 + mix(ss_ticket_number, 82, ss_quantity::BIGINT))::INTEGER AS sr_return_quantity, (ss_sales_price * 2)::DECIMAL(7, 2) AS sr_return_amt,
  (mix(ss_ticket_number * 8 + ss_item_sk, 83, 90000) / 100)::DECIMAL(7, 2) AS sr_net_loss FROM store_sales WHERE mix(ss_ticket_number * 1500 + ss_item_sk, 84, 5) = 0;
INSERT INTO store_returns SELECT 10050, 1 + i, NULL, 1, 1, 1, CASE WHEN i % 2 = 0 THEN 90000 + i END, 3, 20, 10 FROM range(20) t(i);

CREATE TABLE catalog_sales AS
WITH lines AS (SELECT t + 1 AS number, t, n, t * 8 + n AS i FROM range(1500) s(t), range(4) u(n) WHERE n <= mix(t, 90, 4))
SELECT (10000 + mix(t, 91, 990))::INTEGER AS cs_sold_date_sk, (10000 + mix(t, 91, 990) + 2 + mix(i, 92, 130))::INTEGER AS cs_ship_date_sk, mix(t, 93, 1440)::INTEGER AS cs_sold_time_sk,
  (1 + mix(t, 94, 500))::INTEGER AS cs_bill_customer_sk, CASE WHEN mix(t, 95, 10) > 0 THEN 1 + mix(t, 96, 500) END::INTEGER AS cs_ship_customer_sk,
  (1 + mix(t, 97, 1200))::INTEGER AS cs_bill_cdemo_sk, (1 + mix(t, 98, 640))::INTEGER AS cs_bill_hdemo_sk, (1 + mix(t, 99, 1100))::INTEGER AS cs_bill_addr_sk, (1 + mix(t, 100, 1100))::INTEGER AS cs_ship_addr_sk,
  (1 + mix(t, 101, 3))::INTEGER AS cs_call_center_sk, (1 + mix(i, 102, 20))::INTEGER AS cs_catalog_page_sk, (1 + mix(i, 103, 12))::INTEGER AS cs_ship_mode_sk, (1 + mix(i, 104, 5))::INTEGER AS cs_warehouse_sk,
  (1 + (mix(t, 105, 240) * 5 + n * 7) % 1200)::INTEGER AS cs_item_sk, CASE WHEN mix(i, 106, 20) > 0 THEN 1 + mix(i, 107, 30) END::INTEGER AS cs_promo_sk, number::INTEGER AS cs_order_number,
  (1 + mix(i, 108, 100))::INTEGER AS cs_quantity, (1 + mix(i, 109, 10000) / 100)::DECIMAL(7, 2) AS cs_wholesale_cost, (1 + mix(i, 110, 20000) / 100)::DECIMAL(7, 2) AS cs_list_price,
  (mix(i, 111, 20000) / 100)::DECIMAL(7, 2) AS cs_sales_price, (mix(i, 112, 100000) / 100)::DECIMAL(7, 2) AS cs_ext_discount_amt, (mix(i, 113, 2000000) / 100)::DECIMAL(7, 2) AS cs_ext_sales_price,
  (mix(i, 114, 50000) / 100)::DECIMAL(7, 2) AS cs_ext_ship_cost, (mix(i, 115, 50000) / 100)::DECIMAL(7, 2) AS cs_coupon_amt, (mix(i, 116, 2000000) / 100)::DECIMAL(7, 2) AS cs_net_paid,
  (mix(i, 117, 2000000) / 100 - 10000)::DECIMAL(7, 2) AS cs_net_profit FROM lines;
CREATE TABLE catalog_returns AS SELECT (cs_sold_date_sk + 3 + mix(cs_order_number, 120, 90))::INTEGER AS cr_returned_date_sk, cs_item_sk AS cr_item_sk, cs_bill_customer_sk AS cr_returning_customer_sk,
  cs_bill_addr_sk AS cr_returning_addr_sk, cs_call_center_sk AS cr_call_center_sk, cs_catalog_page_sk AS cr_catalog_page_sk, cs_order_number AS cr_order_number,
  (1 + mix(cs_order_number, 121, cs_quantity::BIGINT))::INTEGER AS cr_return_quantity, (cs_sales_price * 3)::DECIMAL(7, 2) AS cr_return_amount, (cs_sales_price * 2)::DECIMAL(7, 2) AS cr_refunded_cash,
  (mix(cs_order_number, 122, 90000) / 100)::DECIMAL(7, 2) AS cr_net_loss FROM catalog_sales WHERE mix(cs_order_number * 1500 + cs_item_sk, 123, 5) = 0;

CREATE TABLE web_sales AS
WITH lines AS (SELECT t + 1 AS number, t, n, t * 8 + n AS i FROM range(1500) s(t), range(4) u(n) WHERE n <= mix(t, 130, 4))
SELECT (10000 + mix(t, 131, 990))::INTEGER AS ws_sold_date_sk, (10000 + mix(t, 131, 990) + 1 + mix(i, 132, 130))::INTEGER AS ws_ship_date_sk, mix(t, 133, 1440)::INTEGER AS ws_sold_time_sk,
  (1 + mix(t, 134, 500))::INTEGER AS ws_bill_customer_sk, CASE WHEN mix(t, 135, 10) > 0 THEN 1 + mix(t, 136, 500) END::INTEGER AS ws_ship_customer_sk,
  (1 + mix(t, 137, 1100))::INTEGER AS ws_bill_addr_sk, (1 + mix(t, 138, 1100))::INTEGER AS ws_ship_addr_sk, (1 + mix(t, 139, 640))::INTEGER AS ws_ship_hdemo_sk,
  (1 + mix(i, 140, 12))::INTEGER AS ws_web_page_sk, (1 + mix(t, 141, 4))::INTEGER AS ws_web_site_sk, (1 + mix(i, 142, 12))::INTEGER AS ws_ship_mode_sk, (1 + mix(i, 143, 5))::INTEGER AS ws_warehouse_sk,
  CASE WHEN mix(i, 144, 20) > 0 THEN 1 + mix(i, 145, 30) END::INTEGER AS ws_promo_sk, (1 + (mix(t, 146, 240) * 5 + n * 7) % 1200)::INTEGER AS ws_item_sk, number::INTEGER AS ws_order_number,
  (1 + mix(i, 147, 100))::INTEGER AS ws_quantity, (1 + mix(i, 148, 10000) / 100)::DECIMAL(7, 2) AS ws_wholesale_cost, (1 + mix(i, 149, 20000) / 100)::DECIMAL(7, 2) AS ws_list_price,
  (mix(i, 150, 20000) / 100)::DECIMAL(7, 2) AS ws_sales_price, (mix(i, 151, 100000) / 100)::DECIMAL(7, 2) AS ws_ext_discount_amt, (mix(i, 152, 2000000) / 100)::DECIMAL(7, 2) AS ws_ext_sales_price,
  (mix(i, 153, 50000) / 100)::DECIMAL(7, 2) AS ws_ext_ship_cost, (mix(i, 154, 2000000) / 100)::DECIMAL(7, 2) AS ws_net_paid, (mix(i, 155, 2000000) / 100 - 10000)::DECIMAL(7, 2) AS ws_net_profit FROM lines;
CREATE TABLE web_returns AS SELECT (ws_sold_date_sk + 3 + mix(ws_order_number, 160, 90))::INTEGER AS wr_returned_date_sk, ws_item_sk AS wr_item_sk, ws_bill_customer_sk AS wr_refunded_customer_sk,
  (1 + mix(ws_order_number, 161, 1200))::INTEGER AS wr_refunded_cdemo_sk, (1 + mix(ws_order_number, 162, 60) * 20)::INTEGER AS wr_returning_cdemo_sk, ws_bill_addr_sk AS wr_refunded_addr_sk,
  ws_web_page_sk AS wr_web_page_sk, (1 + mix(ws_order_number, 163, 6))::INTEGER AS wr_reason_sk, ws_order_number AS wr_order_number,
  (1 + mix(ws_order_number, 164, ws_quantity::BIGINT))::INTEGER AS wr_return_quantity, (ws_sales_price * 3)::DECIMAL(7, 2) AS wr_return_amt, (mix(ws_order_number, 165, 9000) / 100)::DECIMAL(7, 2) AS wr_fee,
  (ws_sales_price * 2)::DECIMAL(7, 2) AS wr_refunded_cash, (mix(ws_order_number, 166, 90000) / 100)::DECIMAL(7, 2) AS wr_net_loss FROM web_sales WHERE mix(ws_order_number * 1500 + ws_item_sk, 167, 4) = 0;
