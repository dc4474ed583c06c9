-- What Power BI's DirectQuery sends.

-- case: a card
select count(*) as "a0" from (select "$Table"."visit_id" as "visit_id" from "public"."visits" "$Table") "rows"

-- case: a column chart
select "_"."ward", "_"."a0"
from (
  select "rows"."ward" as "ward", sum("rows"."cost") as "a0"
  from (select "ward", "cost" from "public"."visits" "$Table") "rows"
  group by "ward"
) "_"
where not "_"."a0" is null
order by "_"."ward"
limit 1000001

-- case: filters inside
-- order: any
select "rows"."kind" as "kind", count(*) as "a0"
from (
  select "_"."kind", "_"."ward"
  from "public"."visits" "_"
  where ("_"."ward" = 'surgery' or "_"."ward" = 'urology') and "_"."admitted" >= timestamp '2024-01-01 00:00:00' and "_"."admitted" < timestamp '2025-01-01 00:00:00'
) "rows"
group by "kind"
limit 1000001

-- case: distinct count
-- order: any
select "rows"."kind" as "kind", count(distinct "rows"."patient_id") as "a0"
from (select "kind", "patient_id" from "public"."visits" "$Table") "rows"
group by "kind"
limit 1000001

-- case: distinct count with its NULL
select count(distinct("rows"."rating")) + max(case when "rows"."rating" is null then 1 else 0 end) as "a0"
from (select "rating" from "public"."visits" "$Table") "rows"

-- case: two tables
-- order: any
select "_"."building", "_"."a0"
from (
  select "rows"."building" as "building", sum("rows"."nights") as "a0"
  from (
    select "$Outer"."nights", "$Inner"."building"
    from "public"."visits" "$Outer" left outer join "public"."wards" "$Inner" on ("$Outer"."ward" = "$Inner"."ward")
  ) "rows"
  group by "building"
) "_"
where not "_"."a0" is null
limit 1000001

-- case: two tables, as the mashup engine nests them
-- order: any
select "rows"."t1_language" as "c3", sum(cast("rows"."t0_paid" as decimal(19,4))) as "a0"
from (
  select "$Outer"."t0_paid" as "t0_paid", "$Inner"."t1_language" as "t1_language"
  from (select "_"."paid" as "t0_paid", "_"."patient_id" as "t0_patient_id" from "public"."visits" "_") "$Outer"
  left outer join (select "_"."patient_id" as "t1_patient_id", "_"."language" as "t1_language" from "public"."patients" "_") "$Inner"
    on ("$Outer"."t0_patient_id" = "$Inner"."t1_patient_id")
) "rows"
group by "t1_language"
limit 1000001

-- case: a date hierarchy
-- order: any
select "rows"."year" as "year", "rows"."month" as "month", avg("rows"."cost") as "a0"
from (select "_"."cost" as "cost", cast(extract(year from "_"."admitted") as integer) as "year", cast(extract(month from "_"."admitted") as integer) as "month" from "public"."visits" "_") "rows"
group by "year", "month"
limit 1000001

-- case: a slicer
select "_"."ward" from (select "ward" from "public"."visits" "$Table" group by "ward") "_" order by "_"."ward" limit 101

-- case: a top-N visual
select "_"."diagnosis", "_"."a0"
from (
  select "rows"."diagnosis" as "diagnosis", count(*) as "a0" from (select "diagnosis" from "public"."visits" "$Table") "rows" group by "diagnosis"
) "_"
order by "_"."a0" desc, "_"."diagnosis"
limit 5

-- case: minimum, maximum and average together
-- tolerance: 1
select min("rows"."nights") as "a0", max("rows"."nights") as "a1", avg(cast("rows"."nights" as double precision)) as "a2" from (select "nights" from "public"."visits" "$Table") "rows"

-- case: a blank-aware sum
-- order: any
select "rows"."urgent" as "urgent", coalesce(sum("rows"."cost"), 0) as "a0", case when count("rows"."cost") = 0 then null else sum("rows"."cost") end as "a1"
from (select "urgent", "cost" from "public"."visits" "$Table") "rows" group by "urgent" limit 1000001

-- case: semi-join of a selection in another table
-- order: any
select "rows"."kind" as "kind", sum("rows"."paid") as "a0"
from (
  select "$Outer"."kind", "$Outer"."paid"
  from "public"."visits" "$Outer"
  inner join (select "_"."ward" as "ward2" from "public"."wards" "_" where "_"."building" = 'east') "$Inner" on ("$Outer"."ward" = "$Inner"."ward2")
) "rows" group by "kind" limit 1000001

-- case: a preview in the query editor
select "$Table"."visit_id" as "visit_id", "$Table"."ward" as "ward" from "public"."visits" "$Table" limit 1000
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: select "$Table"."visit_id" as "visit_id", "$Table"."ward" as "ward" from "public"."visits" "$Table" limit 1000
               ^
HINT:  Aggregate, for example: SELECT ward, COUNT(*) FROM visits GROUP BY ward.
