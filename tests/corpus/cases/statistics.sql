-- Moments, quantiles, extremes, frequent values.

-- case: standard deviation and variance
-- tolerance: 0.01%
SELECT STDDEV(cost) AS sd, VARIANCE(cost) AS var, STDDEV_POP(cost) AS sdp, VAR_POP(cost) AS varp FROM visits

-- case: standard deviation per group
-- tolerance: 0.01%
SELECT kind, AVG(cost) AS mean, STDDEV_SAMP(cost) AS sd, COUNT(cost) AS n FROM visits GROUP BY kind ORDER BY kind

-- case: coefficient of variation
-- tolerance: 0.01%
SELECT ward, STDDEV(nights) / AVG(nights) AS cv FROM visits GROUP BY ward ORDER BY ward

-- case: correlation
-- tolerance: 0.0001
SELECT CORR(height, weight) AS r FROM patients

-- case: covariance
-- tolerance: 0.5
SELECT COVAR_POP(cost, nights) AS pop, COVAR_SAMP(cost, nights) AS samp FROM visits

-- case: a regression line
-- tolerance: 0.01
SELECT REGR_SLOPE(cost, nights) AS slope, REGR_COUNT(cost, nights) AS n, REGR_R2(cost, nights) AS r2 FROM visits

-- case: the intercept of a regression
-- tolerance: 0.1
SELECT kind, REGR_INTERCEPT(cost, nights) AS intercept FROM visits GROUP BY kind ORDER BY kind

-- case: correlation per group of a per-patient figure
-- tolerance: 0.001
SELECT p.insured, CORR(t.n, p.risk) AS r FROM patients p JOIN (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) t ON t.patient_id = p.patient_id GROUP BY p.insured ORDER BY p.insured

-- case: median
-- tolerance: 1
SELECT MEDIAN(cost) AS median FROM visits

-- case: median per group
-- tolerance: 20 in median
SELECT ward, MEDIAN(cost) AS median FROM visits GROUP BY ward ORDER BY ward

-- case: percentile_cont
-- tolerance: 20 in p90
SELECT kind, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY cost) AS p90 FROM visits GROUP BY kind ORDER BY kind

-- case: percentile_disc of an integer
SELECT PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY nights) AS q1, PERCENTILE_DISC(0.75) WITHIN GROUP (ORDER BY nights) AS q3 FROM visits

-- case: several quantiles at once
-- tolerance: 1
SELECT QUANTILE_CONT(cost, [0.25, 0.5, 0.75]) AS quartiles FROM visits

-- case: quantile_disc
-- tolerance: 1
SELECT QUANTILE_DISC(cost, 0.1) AS low FROM visits

-- case: descending order within the group
SELECT PERCENTILE_DISC(0.1) WITHIN GROUP (ORDER BY nights DESC) AS top FROM visits

-- case: interquartile range
-- tolerance: 2
SELECT PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY cost) - PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY cost) AS iqr FROM visits

-- case: minimum and maximum of a number
-- tolerance: 100
SELECT MIN(cost) AS least, MAX(cost) AS most FROM visits

-- case: minimum and maximum of an integer per group
SELECT ward, MIN(nights) AS least, MAX(nights) AS most FROM visits GROUP BY ward ORDER BY ward

-- case: minimum and maximum of a time
-- tolerance: 15
SELECT MIN(admitted) AS first, MAX(admitted) AS last FROM visits

-- case: minimum and maximum of a date
-- tolerance: 40
SELECT MIN(birth_date) AS oldest, MAX(birth_date) AS youngest FROM patients WHERE insured

-- case: median of a date per group
-- tolerance: 3
SELECT kind, PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY day) AS middle FROM visits GROUP BY kind ORDER BY kind

-- case: median of a decimal
-- tolerance: 1
SELECT urgent, MEDIAN(paid) AS median FROM visits GROUP BY urgent ORDER BY urgent

-- case: the most frequent value
SELECT MODE(nights) AS usual FROM visits

-- case: the most frequent value of a group
SELECT kind, MODE() WITHIN GROUP (ORDER BY drug) AS usual FROM prescriptions r JOIN visits v USING (visit_id) GROUP BY kind ORDER BY kind

-- case: a histogram
SELECT HISTOGRAM(drug) AS drugs FROM prescriptions

-- case: approximate spellings
-- tolerance: 60
SELECT APPROX_QUANTILE(cost, 0.5) AS middle FROM visits

-- case: approximate count of distinct values
SELECT APPROX_COUNT_DISTINCT(diagnosis) AS codes FROM visits
---- duckdb
SELECT COUNT(DISTINCT diagnosis) AS codes FROM visits

-- case: quantiles beside counts
-- tolerance: 20 in median
SELECT ward, COUNT(*) AS n, AVG(cost) AS mean, MEDIAN(cost) AS median FROM visits GROUP BY ward HAVING COUNT(*) > 100 ORDER BY ward

-- case: median of a per-patient count
-- tolerance: 1
SELECT MEDIAN(n) AS median FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) t

-- case: a quantile of a filtered argument
-- tolerance: 3
SELECT MEDIAN(cost) FILTER (WHERE urgent) AS urgent, MEDIAN(CASE WHEN NOT urgent THEN cost END) AS calm FROM visits

-- case: z-score limits by a scalar sub-select
SELECT COUNT(*) AS outliers FROM visits WHERE cost > (SELECT AVG(cost) + 1.5 * STDDEV(cost) FROM visits)

-- case: above the median
SELECT kind, COUNT(*) AS n FROM visits WHERE nights > (SELECT MEDIAN(nights) FROM visits) GROUP BY kind ORDER BY kind

-- case: error bars beside a count
-- note: without noise the bars are the mechanism's own figures, which DuckDB does not have
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING DP_STDERR(COUNT(*)) < 5000 AND DP_LOW(COUNT(*)) <= DP_HIGH(COUNT(*)) ORDER BY ward
---- duckdb
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward
