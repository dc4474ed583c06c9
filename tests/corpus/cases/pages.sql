-- Statements of ours in the shape of ClickBench, over one wide table of hits.

-- schema: web

-- case: hours of a day with hits, visitors and pages in one
SELECT EXTRACT(hour FROM EventTime) AS hour, COUNT(*) AS hits, COUNT(DISTINCT UserID) AS visitors, AVG(SendTiming) AS timing FROM hits WHERE EventDate = DATE '2013-07-10' GROUP BY hour ORDER BY hour

-- case: hosts of referers by hits
SELECT REGEXP_REPLACE(Referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') AS host, COUNT(*) AS n, AVG(LENGTH(Referer)) AS l FROM hits WHERE Referer <> '' GROUP BY host HAVING COUNT(*) > 100 ORDER BY n DESC, host LIMIT 20

-- case: sums of a width shifted by steps
SELECT SUM(ResolutionWidth), SUM(ResolutionWidth + 1), SUM(ResolutionWidth + 2), SUM(ResolutionWidth + 3), SUM(ResolutionWidth + 4) FROM hits

-- case: pages in a time with the rank of each
SELECT URL, COUNT(*) AS views, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, URL) AS place FROM hits WHERE EventDate BETWEEN DATE '2013-07-05' AND DATE '2013-07-15' AND IsRefresh = 0 GROUP BY URL ORDER BY views DESC, URL LIMIT 10

-- case: phrases with the first page of them
-- tolerance: 5% in short
SELECT SearchPhrase, MIN(LENGTH(URL)) AS short, COUNT(*) AS c FROM hits WHERE URL LIKE '%a%' AND SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC, 1 LIMIT 5

-- case: visitors who came on several days
SELECT days, COUNT(*) AS visitors FROM (SELECT UserID, COUNT(DISTINCT EventDate) AS days FROM hits GROUP BY UserID) t WHERE days <= 10 GROUP BY days ORDER BY days

-- case: where visitors come from, in words, and the page
SELECT CASE WHEN SearchEngineID = 0 AND AdvEngineID = 0 THEN 'direct' WHEN AdvEngineID > 0 THEN 'ad' ELSE 'search' END AS source, IsMobile, COUNT(*) AS n FROM hits GROUP BY source, IsMobile ORDER BY source, IsMobile

-- case: minutes of an hour
-- empty: m
SELECT DATE_TRUNC('minute', EventTime) AS m, COUNT(*) AS n FROM hits WHERE EventTime >= TIMESTAMP '2013-07-14 10:00:00' AND EventTime < TIMESTAMP '2013-07-14 11:00:00' GROUP BY m ORDER BY m

-- case: widths by their share
SELECT WindowWidth / 200 AS width, COUNT(*) AS n, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 3) AS percent FROM hits GROUP BY width ORDER BY width

-- case: visitors of two regions
SELECT COUNT(*) AS n FROM (SELECT UserID FROM hits WHERE RegionID = 1 INTERSECT SELECT UserID FROM hits WHERE RegionID = 2) both_regions

-- case: bounces of new and old versions of the counter
SELECT IsOldCounter, AVG(IsNotBounce) AS stays, COUNT(*) FILTER (WHERE IsDownload = 1) AS downloads, MAX(HTTPError) AS error FROM hits GROUP BY IsOldCounter ORDER BY IsOldCounter

-- case: the median time of each operating system
-- tolerance: 3% in median
SELECT OS, MEDIAN(ResponseEndTiming) AS median, COUNT(*) AS n FROM hits WHERE OS BETWEEN 1 AND 4 GROUP BY OS ORDER BY OS
