-- WITH: chains, nests and reuse; models as dbt writes them.

-- case: a chain of private steps
WITH urgent AS (SELECT * FROM visits WHERE urgent), dear AS (SELECT * FROM urgent WHERE cost > 1000)
SELECT ward, COUNT(*) AS n FROM dear GROUP BY ward ORDER BY ward

-- case: a private step used twice
WITH v AS (SELECT patient_id, kind, paid FROM visits WHERE paid > 100)
SELECT (SELECT COUNT(*) FROM v) AS n, (SELECT SUM(paid) FROM v WHERE kind = 'emergency') AS emergency

-- case: a released step used twice
WITH w AS (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)
SELECT a.ward, a.n, a.n - b.m AS above FROM w a CROSS JOIN (SELECT AVG(n) AS m FROM w) b ORDER BY a.ward

-- case: nested WITH
WITH outer_step AS (WITH inner_step AS (SELECT ward, cost FROM visits WHERE cost > 10) SELECT ward, SUM(cost) AS total FROM inner_step GROUP BY ward)
SELECT ward, total FROM outer_step WHERE total > 1900000 ORDER BY ward

-- case: renamed columns
WITH t(place, amount) AS (SELECT ward, paid FROM visits) SELECT place, SUM(amount) FROM t GROUP BY place ORDER BY place

-- case: released and public steps joined
WITH floors AS (SELECT floor, SUM(beds) AS beds FROM wards GROUP BY floor),
stays AS (SELECT w.floor, SUM(v.nights) AS nights FROM visits v JOIN wards w ON w.ward = v.ward GROUP BY w.floor)
SELECT f.floor, f.beds, s.nights, s.nights * 1.0 / f.beds AS per_bed FROM floors f JOIN stays s ON s.floor = f.floor ORDER BY f.floor

-- case: dbt: import, logical, final
-- category: dbt
with

source_visits as (

    select * from visits

),

source_patients as (

    select * from patients

),

renamed as (

    select
        visit_id,
        patient_id,
        ward as ward_name,
        coalesce(cost, 0) as cost_usd,
        admitted as visited_at
    from source_visits

),

joined as (

    select
        renamed.*,
        source_patients.language
    from renamed
    left join source_patients on renamed.patient_id = source_patients.patient_id

),

final as (

    select
        language,
        date_trunc('year', visited_at) as visited_year,
        count(*) as visit_count,
        count(distinct patient_id) as patient_count,
        sum(cost_usd) as total_cost
    from joined
    group by 1, 2

)

select * from final
order by language, visited_year

-- case: dbt: a mart of per-patient facts
-- category: dbt
with visit_facts as (
    select
        patient_id,
        count(*) as visits,
        sum(case when kind = 'emergency' then 1 else 0 end) as emergencies,
        min(day) as first_visit
    from visits
    group by 1
),
final as (
    select
        patients.language,
        patients.insured,
        coalesce(visit_facts.visits, 0) as visits,
        coalesce(visit_facts.emergencies, 0) as emergencies
    from patients
    left join visit_facts using (patient_id)
)
select language, insured, count(*) as patients, sum(visits) as visits, avg(emergencies) as emergencies
from final
group by language, insured
order by language, insured

-- case: dbt: ratio measures as Looker writes them
-- category: dbt
SELECT
    visits.ward AS "visits.ward",
    COUNT(DISTINCT visits.patient_id) AS "visits.patients",
    COALESCE(SUM(visits.paid), 0) AS "visits.total_paid",
    1.0 * COUNT(CASE WHEN visits.urgent THEN 1 ELSE NULL END) / NULLIF(COUNT(*), 0) AS "visits.urgent_rate"
FROM public.visits AS visits
LEFT JOIN public.wards AS wards ON visits.ward = wards.ward
WHERE ((( visits.admitted ) >= (TIMESTAMP '2024-01-01') AND ( visits.admitted ) < (TIMESTAMP '2025-01-01')))
GROUP BY 1
ORDER BY 2 DESC, 1
LIMIT 500

-- case: dbt: Looker's date dimension
-- category: dbt
SELECT
    (TO_CHAR(DATE_TRUNC('month', visits.admitted ), 'YYYY-MM')) AS "visits.at_month",
    COUNT(*) AS "visits.count"
FROM public.visits AS visits
GROUP BY
    (DATE_TRUNC('month', visits.admitted ))
ORDER BY
    1 DESC
FETCH NEXT 500 ROWS ONLY
---- duckdb
SELECT strftime(DATE_TRUNC('month', admitted), '%Y-%m') AS "visits.at_month", COUNT(*) AS "visits.count" FROM visits GROUP BY DATE_TRUNC('month', admitted) ORDER BY 1 DESC LIMIT 500

-- case: dbt: a model over union of models
-- category: dbt
with emergencies as (select visit_id, patient_id, paid, 'emergency' as source from visits where kind = 'emergency'),
scheduled as (select visit_id, patient_id, paid, 'scheduled' as source from visits where kind = 'scheduled'),
unioned as (select * from emergencies union all select * from scheduled)
select source, count(*) as n, sum(paid) as paid, count(distinct patient_id) as patients from unioned group by source order by source

-- case: dbt: deduplicated staging
-- category: dbt
with ranked as (
    select *, row_number() over (partition by patient_id, ward order by admitted desc, visit_id desc) as _row from visits
),
deduplicated as (select * from ranked where _row = 1)
select ward, count(*) as patients, avg(nights) as nights from deduplicated group by ward order by ward

-- case: dbt: a test that counts failures
-- category: dbt
select count(*) as failures, count(*) != 0 as should_warn, count(*) != 0 as should_error
from (select visit_id from visits where cost < 0 or nights is null) dbt_internal_test

-- case: dbt: accepted values
-- category: dbt
with all_values as (select kind as value_field, count(*) as n_records from visits group by kind)
select count(*) as failures from (select * from all_values where value_field not in ('emergency', 'scheduled', 'follow-up')) dbt_internal_test

-- case: dbt: a snapshot of active patients by month
-- category: dbt
with monthly as (select distinct patient_id, date_trunc('month', admitted)::date as month from visits),
lagged as (select patient_id, month, lag(month) over (partition by patient_id order by month) as previous from monthly)
select month, count(*) as active, count(*) filter (where previous is null) as first_time, count(*) filter (where date_diff('month', previous, month) = 1) as retained
from lagged group by month order by month
