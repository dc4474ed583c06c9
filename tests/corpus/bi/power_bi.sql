-- What Power BI's DirectQuery and its navigator send, beyond cases/power_bi.sql.

-- case: a slicer of declared values
select "_"."kind" from (select "rows"."kind" as "kind" from (select "kind" from "public"."visits" "$Table") "rows" group by "kind") "_" order by "_"."kind" limit 101

-- case: a slicer of a boolean
-- order: any
select "_"."urgent" from (select "urgent" from "public"."visits" "$Table" group by "urgent") "_" limit 1000001

-- case: a slicer of dates
select min("rows"."day") as "a0", max("rows"."day") as "a1" from (select "day" from "public"."visits" "$Table") "rows"
---- duckdb
SELECT DATE '2023-01-01' AS a0, DATE '2024-12-31' AS a1

-- case: a slicer of dates, wrapped once more
select "_"."a0", "_"."a1" from (select min("rows"."admitted") as "a0", max("rows"."admitted") as "a1" from (select "_"."admitted" as "admitted" from "public"."visits" "_") "rows") "_" limit 1000001
---- duckdb
SELECT TIMESTAMP '2023-01-01' AS a0, TIMESTAMP '2024-12-31 23:59:59' AS a1

-- case: a slicer with a search
select "_"."kind" from (select "rows"."kind" as "kind" from (select "kind" from "public"."visits" "$Table" where strpos("kind", 'led') > 0) "rows" group by "kind") "_" limit 101

-- case: a matrix
-- order: any
select "_"."ward", "_"."kind", "_"."a0", "_"."a1"
from (
  select "rows"."ward" as "ward", "rows"."kind" as "kind", sum("rows"."paid") as "a0", count("rows"."rating") as "a1"
  from (select "ward", "kind", "paid", "rating" from "public"."visits" "$Table") "rows"
  group by "ward", "kind"
) "_"
where not "_"."a0" is null or not "_"."a1" is null
limit 1000001

-- case: a case for blanks
-- order: any
select "_"."sex", "_"."a0" from (
  select case when "rows"."sex" is null then '(blank)' else "rows"."sex" end as "sex", count(*) as "a0"
  from (select "sex" from "public"."patients" "$Table") "rows" group by case when "rows"."sex" is null then '(blank)' else "rows"."sex" end
) "_" limit 1000001

-- case: a page of members
select "_"."ward", "_"."a0" from (select "rows"."ward" as "ward", count(*) as "a0" from (select "ward" from "public"."visits" "$Table") "rows" group by "ward") "_"
where "_"."ward" > 'm' order by "_"."ward" limit 501

-- case: a filter on a measure
-- order: any
select "_"."diagnosis", "_"."a0" from (select "rows"."diagnosis" as "diagnosis", avg("rows"."cost") as "a0" from (select "diagnosis", "cost" from "public"."visits" "$Table") "rows" group by "diagnosis") "_"
where "_"."a0" >= 2400 and "_"."a0" < 2600 limit 1000001

-- case: a filter on a day that was picked
-- order: any
select "rows"."ward" as "ward", count(*) as "a0"
from (select "_"."ward", "_"."admitted" from "public"."visits" "_" where "_"."admitted" >= timestamp '2024-05-01 00:00:00' and "_"."admitted" < timestamp '2024-06-01 00:00:00') "rows"
group by "ward" limit 1000001

-- case: a calculated column of a date
-- order: any
select "rows"."m" as "m", sum("rows"."nights") as "a0"
from (select cast(date_trunc('month', "_"."admitted") as date) as "m", "_"."nights" as "nights" from "public"."visits" "_") "rows" group by "m" limit 1000001

-- case: years as the hierarchy's first level
-- order: any
select "rows"."y" as "y", count(distinct "rows"."patient_id") as "a0" from (select extract(year from "_"."day") as "y", "_"."patient_id" as "patient_id" from "public"."visits" "_") "rows" group by "y" limit 1000001

-- case: a ratio
select case when sum("rows"."cost") = 0 then null else sum("rows"."paid") / sum("rows"."cost") end as "a0" from (select "paid", "cost" from "public"."visits" "$Table") "rows"

-- case: a join of two private tables
-- order: any
select "rows"."sex" as "sex", sum("rows"."nights") as "a0"
from (
  select "$Outer"."nights", "$Inner"."sex"
  from (select "nights", "patient_id" from "public"."visits" "$Table") "$Outer"
  inner join (select "patient_id" as "pid2", "sex" from "public"."patients" "$Table") "$Inner" on ("$Outer"."patient_id" = "$Inner"."pid2")
) "rows"
where not "rows"."sex" is null
group by "sex" limit 1000001

-- case: a semi-join with a list of members
-- order: any
select "rows"."diagnosis" as "diagnosis", count(*) as "a0"
from (
  select "$Outer"."diagnosis" from "public"."visits" "$Outer"
  inner join (select 'surgery' as "c1" union all select 'urology' as "c1") "$Inner" on ("$Outer"."ward" = "$Inner"."c1")
) "rows" group by "diagnosis" limit 1000001

-- case: a table of totals
select sum("rows"."paid") as "a0", avg("rows"."paid") as "a1", count(*) as "a2", count(distinct "rows"."ward") as "a3" from (select "paid", "ward" from "public"."visits" "$Table") "rows"

-- case: rows of a dimension
select "$Table"."ward" as "ward", "$Table"."floor" as "floor" from "public"."wards" "$Table" order by "$Table"."ward" limit 1000001

-- case: the navigator's preview
select * from "public"."visits" "$Table" limit 200
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: select * from "public"."visits" "$Table" limit 200
               ^
HINT:  Aggregate, for example: SELECT kind, COUNT(*) FROM visits GROUP BY kind. For rows like them: CREATE SYNTHETIC TABLE visits_like AS SELECT kind, admitted, logged, day FROM visits.

-- case: the navigator's preview of chosen columns
select "$Table"."cost" as "cost", "$Table"."admitted" as "admitted" from "public"."visits" "$Table" limit 4096
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: select "$Table"."cost" as "cost", "$Table"."admitted" as "admitted" from "public"."visits" "$Table" limit 4096
               ^
HINT:  Aggregate, for example: SELECT DATE_TRUNC('month', admitted), COUNT(*) FROM visits GROUP BY 1.

-- case: the schema of a table
select * from "public"."visits" "$Table" limit 0
---- duckdb
SELECT * FROM visits LIMIT 0
