-- Log analysis over one wide table, most of whose keys are not listed: what a unit's rows would be answered with is refused.

-- schema: web

-- case: hits
SELECT COUNT(*) FROM hits

-- case: hits with a screen
SELECT COUNT(*) FROM hits WHERE ResolutionHeight <> 0

-- case: a sum, a count and an average together
SELECT SUM(IsRefresh), COUNT(*), AVG(WindowWidth) FROM hits

-- case: an average of ids of units
SELECT AVG(UserID) FROM hits

-- case: an average of another large number without bounds
-- tolerance: 0.1%
SELECT AVG(HitID) AS middle FROM hits

-- case: visitors
SELECT COUNT(DISTINCT UserID) FROM hits

-- case: different phrases
SELECT COUNT(DISTINCT SearchPhrase) FROM hits

-- case: pages and phones
SELECT COUNT(DISTINCT URL) AS pages, COUNT(DISTINCT MobilePhoneModel) AS phones FROM hits WHERE IsMobile = 1

-- case: first and last day
SELECT MIN(EventDate), MAX(EventDate) FROM hits

-- case: a small code that is not 0, by count
SELECT TrafficSourceID, COUNT(*) FROM hits WHERE TrafficSourceID <> 0 GROUP BY TrafficSourceID ORDER BY COUNT(*) DESC

-- case: codes that few rows have
SELECT AdvEngineID, COUNT(*) AS n FROM hits WHERE AdvEngineID <> 0 GROUP BY AdvEngineID ORDER BY n DESC, AdvEngineID

-- case: regions by visitors
SELECT RegionID, COUNT(DISTINCT UserID) AS visitors FROM hits GROUP BY RegionID ORDER BY visitors DESC, RegionID LIMIT 10

-- case: regions with four aggregates
SELECT RegionID, SUM(AdvEngineID) AS adv, COUNT(*) AS c, AVG(ResolutionWidth) AS width, COUNT(DISTINCT UserID) AS visitors FROM hits
GROUP BY RegionID ORDER BY c DESC, RegionID LIMIT 10

-- case: phones by visitors
SELECT MobilePhoneModel, COUNT(DISTINCT UserID) AS u FROM hits WHERE MobilePhoneModel <> '' GROUP BY MobilePhoneModel ORDER BY u DESC LIMIT 10

-- case: phones of two kinds by visitors
SELECT HasCookies, MobilePhoneModel, COUNT(DISTINCT UserID) AS u FROM hits WHERE MobilePhoneModel <> ''
GROUP BY HasCookies, MobilePhoneModel ORDER BY u DESC, 1, 2 LIMIT 10

-- case: phrases by hits
SELECT SearchPhrase, COUNT(*) AS n FROM hits WHERE SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY n DESC LIMIT 3

-- case: phrases by visitors
SELECT SearchPhrase, COUNT(DISTINCT UserID) AS visitors FROM hits WHERE SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY visitors DESC, 1 LIMIT 10

-- case: an engine and a phrase
SELECT SearchEngineID, SearchPhrase, COUNT(*) AS n FROM hits WHERE SearchPhrase <> '' GROUP BY SearchEngineID, SearchPhrase ORDER BY n DESC, 1, 2 LIMIT 10

-- case: visitors by hits
SELECT UserID, COUNT(*) FROM hits GROUP BY UserID ORDER BY COUNT(*) DESC LIMIT 10
---- error
NotPrivate 0A000: grouping by the privacy unit would return a row for each unit
LINE 1: SELECT UserID, COUNT(*) FROM hits GROUP BY UserID ORDER BY COUNT(*) DESC LIMIT 10
                                                   ^
DETAIL:  Each such group holds one unit, and no group of one may appear in an answer.
HINT:  Aggregate once more: SELECT COUNT(*), AVG(n) FROM (SELECT …, COUNT(*) AS n … GROUP BY …) AS t.

-- case: visitors and phrases
SELECT UserID, SearchPhrase, COUNT(*) FROM hits GROUP BY UserID, SearchPhrase LIMIT 10
---- error
NotPrivate 0A000: grouping by the privacy unit would return a row for each unit
LINE 1: SELECT UserID, SearchPhrase, COUNT(*) FROM hits GROUP BY UserID, SearchPhrase LIMIT 10
                                                                 ^
DETAIL:  Each such group holds one unit, and no group of one may appear in an answer.
HINT:  Aggregate once more: SELECT COUNT(*), AVG(n) FROM (SELECT …, COUNT(*) AS n … GROUP BY …) AS t.

-- case: visitors, minutes and phrases
SELECT UserID, EXTRACT(minute FROM EventTime) AS m, SearchPhrase, COUNT(*) FROM hits GROUP BY UserID, m, SearchPhrase ORDER BY COUNT(*) DESC LIMIT 10
---- error
NotPrivate 0A000: grouping by the privacy unit would return a row for each unit
LINE 1: SELECT UserID, EXTRACT(minute FROM EventTime) AS m, SearchPhrase, COUNT(*) FROM hits GROUP BY UserID, m, SearchPhrase ORDER BY COUNT(*) DESC LIMIT 10
                                                                                                      ^
DETAIL:  Each such group holds one unit, and no group of one may appear in an answer.
HINT:  Aggregate once more: SELECT COUNT(*), AVG(n) FROM (SELECT …, COUNT(*) AS n … GROUP BY …) AS t.

-- case: one visitor
SELECT UserID FROM hits WHERE UserID = 2305843009213693952
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT UserID FROM hits WHERE UserID = 2305843009213693952
               ^
HINT:  Aggregate, for example: SELECT COUNT(*) FROM hits.

-- case: minutes of the hour and phrases
SELECT EXTRACT(minute FROM EventTime) AS m, SearchEngineID, COUNT(*) AS n FROM hits WHERE SearchEngineID <> 0 AND EXTRACT(minute FROM EventTime) < 10
GROUP BY m, SearchEngineID HAVING COUNT(*) > 9 ORDER BY n DESC, m, SearchEngineID LIMIT 10

-- case: pages of one word
SELECT COUNT(*) FROM hits WHERE URL LIKE '%google%'

-- case: phrases on pages of one word, with the first page
SELECT SearchPhrase, MIN(URL), COUNT(*) AS c FROM hits WHERE URL LIKE '%films%' AND SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10
---- error
Unsupported 0A000: MIN() is for numbers, dates and timestamps, not text
LINE 1: SELECT SearchPhrase, MIN(URL), COUNT(*) AS c FROM hits WHERE URL LIKE '%films%' AND SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10
                                 ^
HINT:  MODE(URL) gives its most frequent value; COUNT(*) with GROUP BY lists its values.

-- case: phrases on pages of one word, with the most frequent page
SELECT SearchPhrase, MODE(URL) AS page, COUNT(*) AS c FROM hits WHERE URL LIKE '%films%' AND SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC, 1 LIMIT 10

-- case: titles with a word and pages without
SELECT SearchPhrase, COUNT(*) AS c, COUNT(DISTINCT UserID) AS visitors FROM hits
WHERE Title LIKE '%Google%' AND URL NOT LIKE '%.google.%' AND SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC, 1 LIMIT 10

-- case: whole rows
SELECT * FROM hits WHERE URL LIKE '%google%' ORDER BY EventTime LIMIT 10
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT * FROM hits WHERE URL LIKE '%google%' ORDER BY EventTime LIMIT 10
               ^
HINT:  Aggregate, for example: SELECT COUNT(*) FROM hits. For rows like them: CREATE SYNTHETIC TABLE hits_like AS SELECT "HasJava", "IsGood", "EventTime", "EventDate" FROM hits.

-- case: the first phrases
SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime, SearchPhrase LIMIT 10
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime, SearchPhrase LIMIT 10
               ^
HINT:  Aggregate, for example: SELECT "SearchPhrase", COUNT(*) FROM hits GROUP BY "SearchPhrase".

-- case: phrases by the alphabet
SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY SearchPhrase LIMIT 10

-- case: the mean length of pages, in characters
SELECT CounterID, AVG(LENGTH(URL)) AS l, COUNT(*) AS c FROM hits WHERE URL <> '' GROUP BY CounterID HAVING COUNT(*) > 100 ORDER BY l DESC LIMIT 25

-- case: the mean length of pages, in bytes
SELECT CounterID, AVG(STRLEN(URL)) AS l, COUNT(*) AS c FROM hits WHERE URL <> '' GROUP BY CounterID HAVING COUNT(*) > 100 ORDER BY l DESC LIMIT 25

-- case: hosts that led here
SELECT REGEXP_REPLACE(Referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') AS host, AVG(STRLEN(Referer)) AS l, COUNT(*) AS c FROM hits
WHERE Referer <> '' GROUP BY host HAVING COUNT(*) > 100 ORDER BY l DESC LIMIT 25

-- case: hosts that led here, with the first page of each
SELECT REGEXP_REPLACE(Referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') AS host, MIN(Referer), COUNT(*) AS c FROM hits
WHERE Referer <> '' GROUP BY host HAVING COUNT(*) > 100 ORDER BY c DESC
---- error
Unsupported 0A000: MIN() is for numbers, dates and timestamps, not text
LINE 1: SELECT REGEXP_REPLACE(Referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') AS host, MIN(Referer), COUNT(*) AS c FROM hits
                                                                                             ^
HINT:  MODE(Referer) gives its most frequent value; COUNT(*) with GROUP BY lists its values.

-- case: ninety sums of one column and a number
SELECT SUM(WindowHeight),SUM(WindowHeight + 1), SUM(WindowHeight + 2), SUM(WindowHeight + 3), SUM(WindowHeight + 4), SUM(WindowHeight + 5), SUM(WindowHeight + 6),
SUM(WindowHeight + 7), SUM(WindowHeight + 8), SUM(WindowHeight + 9), SUM(WindowHeight + 10), SUM(WindowHeight + 11), SUM(WindowHeight + 12),
SUM(WindowHeight + 13), SUM(WindowHeight + 14), SUM(WindowHeight + 15), SUM(WindowHeight + 16), SUM(WindowHeight + 17), SUM(WindowHeight + 18),
SUM(WindowHeight + 19), SUM(WindowHeight + 20), SUM(WindowHeight + 21), SUM(WindowHeight + 22), SUM(WindowHeight + 23), SUM(WindowHeight + 24),
SUM(WindowHeight + 25), SUM(WindowHeight + 26), SUM(WindowHeight + 27), SUM(WindowHeight + 28), SUM(WindowHeight + 29), SUM(WindowHeight + 30),
SUM(WindowHeight + 31), SUM(WindowHeight + 32), SUM(WindowHeight + 33), SUM(WindowHeight + 34), SUM(WindowHeight + 35), SUM(WindowHeight + 36),
SUM(WindowHeight + 37), SUM(WindowHeight + 38), SUM(WindowHeight + 39), SUM(WindowHeight + 40), SUM(WindowHeight + 41), SUM(WindowHeight + 42),
SUM(WindowHeight + 43), SUM(WindowHeight + 44), SUM(WindowHeight + 45), SUM(WindowHeight + 46), SUM(WindowHeight + 47), SUM(WindowHeight + 48),
SUM(WindowHeight + 49), SUM(WindowHeight + 50), SUM(WindowHeight + 51), SUM(WindowHeight + 52), SUM(WindowHeight + 53), SUM(WindowHeight + 54),
SUM(WindowHeight + 55), SUM(WindowHeight + 56), SUM(WindowHeight + 57), SUM(WindowHeight + 58), SUM(WindowHeight + 59), SUM(WindowHeight + 60),
SUM(WindowHeight + 61), SUM(WindowHeight + 62), SUM(WindowHeight + 63), SUM(WindowHeight + 64), SUM(WindowHeight + 65), SUM(WindowHeight + 66),
SUM(WindowHeight + 67), SUM(WindowHeight + 68), SUM(WindowHeight + 69), SUM(WindowHeight + 70), SUM(WindowHeight + 71), SUM(WindowHeight + 72),
SUM(WindowHeight + 73), SUM(WindowHeight + 74), SUM(WindowHeight + 75), SUM(WindowHeight + 76), SUM(WindowHeight + 77), SUM(WindowHeight + 78),
SUM(WindowHeight + 79), SUM(WindowHeight + 80), SUM(WindowHeight + 81), SUM(WindowHeight + 82), SUM(WindowHeight + 83), SUM(WindowHeight + 84),
SUM(WindowHeight + 85), SUM(WindowHeight + 86), SUM(WindowHeight + 87), SUM(WindowHeight + 88), SUM(WindowHeight + 89), SUM(WindowHeight + 90)
FROM hits

-- case: an engine and an address
SELECT SearchEngineID, ClientIP, COUNT(*) AS c, SUM(IsRefresh), AVG(WindowWidth) FROM hits WHERE SearchPhrase <> ''
GROUP BY SearchEngineID, ClientIP HAVING COUNT(DISTINCT UserID) > 3 ORDER BY c DESC, 1, 2 LIMIT 10

-- case: a hit and an address are one row each
-- note: no hit is of two visitors, so no group appears
SELECT HitID, ClientIP, COUNT(*) AS c, SUM(IsRefresh) FROM hits GROUP BY HitID, ClientIP ORDER BY c DESC LIMIT 10
---- duckdb
SELECT HitID, ClientIP, COUNT(*) AS c, SUM(IsRefresh) FROM hits GROUP BY HitID, ClientIP HAVING COUNT(DISTINCT UserID) > 1

-- case: pages by hits
SELECT URL, COUNT(*) AS c FROM hits GROUP BY URL ORDER BY c DESC LIMIT 10

-- case: a literal among the keys, by its position
SELECT 1, URL, COUNT(*) AS c FROM hits GROUP BY 1, URL ORDER BY c DESC LIMIT 10

-- case: a literal among the keys, by its name
SELECT 'web' AS source, URL, COUNT(*) AS c FROM hits GROUP BY source, URL ORDER BY c DESC LIMIT 10

-- case: an address and its neighbors
SELECT ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3, COUNT(*) AS c FROM hits GROUP BY ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3
HAVING COUNT(DISTINCT UserID) > 4 ORDER BY c DESC, ClientIP LIMIT 10

-- case: pages of a site in a month
SELECT URL, COUNT(*) AS views FROM hits
WHERE CounterID = 10 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31' AND DontCountHit = 0 AND IsRefresh = 0 AND URL <> ''
GROUP BY URL ORDER BY views DESC LIMIT 10

-- case: titles of a site in a month
SELECT Title, COUNT(*) AS views FROM hits
WHERE CounterID = 10 AND EventDate BETWEEN '2013-07-01' AND '2013-07-31' AND DontCountHit = 0 AND IsRefresh = 0 AND Title <> ''
GROUP BY Title ORDER BY views DESC, Title LIMIT 10

-- case: the second page of linked pages
SELECT URL, COUNT(*) AS views FROM hits WHERE CounterID = 10 AND EventDate >= '2013-07-05' AND IsLink <> 0 AND IsDownload = 0
GROUP BY URL ORDER BY views DESC, URL LIMIT 5 OFFSET 3

-- case: sources and where they lead, a CASE among the keys
SELECT TrafficSourceID, HasJava, CASE WHEN SearchEngineID = 0 AND AdvEngineID = 0 THEN Referer ELSE '' END AS source, URL AS target, COUNT(*) AS views
FROM hits WHERE CounterID = 10 AND EventDate >= '2013-07-01' AND IsRefresh = 0
GROUP BY TrafficSourceID, HasJava, source, target HAVING COUNT(*) > 5 ORDER BY views DESC, 1, 2, 3, 4 LIMIT 10

-- case: a hash and a day
SELECT URLHash, EventDate, COUNT(*) AS views FROM hits
WHERE CounterID = 10 AND EventDate >= '2013-07-01' AND IsRefresh = 0 AND TrafficSourceID IN (-1, 6) AND RefererHash <> 3594120000172545465
GROUP BY URLHash, EventDate HAVING COUNT(*) > 3 ORDER BY views DESC, URLHash, EventDate LIMIT 10 OFFSET 2

-- case: sizes of windows
SELECT ResolutionWidth, ResolutionHeight, COUNT(*) AS views FROM hits
WHERE CounterID = 10 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31' AND IsRefresh = 0 AND DontCountHit = 0
GROUP BY ResolutionWidth, ResolutionHeight ORDER BY views DESC, 1, 2 LIMIT 10 OFFSET 1

-- case: views by the minute
SELECT DATE_TRUNC('minute', EventTime) AS m, COUNT(*) AS views FROM hits
WHERE EventDate >= '2013-07-14' AND EventDate <= '2013-07-15' AND IsRefresh = 0
GROUP BY DATE_TRUNC('minute', EventTime) HAVING COUNT(*) > 1 ORDER BY DATE_TRUNC('minute', EventTime) LIMIT 10 OFFSET 5

-- case: views by the hour
-- empty: h
SELECT DATE_TRUNC('hour', EventTime) AS h, COUNT(*) AS views, COUNT(DISTINCT UserID) AS visitors FROM hits WHERE EventDate = '2013-07-14'
GROUP BY DATE_TRUNC('hour', EventTime) ORDER BY h

-- case: all hits of a site by nothing
SELECT 1 AS one, 'all' AS what, COUNT(*) AS c FROM hits GROUP BY 1, 2

-- case: bytes beyond characters
SELECT CounterID, SUM(OCTET_LENGTH(Title) - LENGTH(Title)) AS beyond, AVG(LENGTHB(Title)) AS bytes FROM hits GROUP BY CounterID HAVING COUNT(*) > 50
---- duckdb
SELECT CounterID, SUM(STRLEN(Title) - LENGTH(Title)) AS beyond, AVG(STRLEN(Title)) AS bytes FROM hits GROUP BY CounterID HAVING COUNT(*) > 50

-- case: the ten busiest days
SELECT EventDate, COUNT(*) AS c, SUM(IsDownload) AS downloads FROM hits GROUP BY EventDate ORDER BY c DESC, EventDate LIMIT 10

-- case: days between the first and the last hit of a visitor
SELECT AVG(last - first) AS days FROM (SELECT UserID, MIN(EventDate) AS first, MAX(EventDate) AS last FROM hits GROUP BY UserID) AS t

-- case: sessions by length
SELECT n, COUNT(*) AS sessions FROM (SELECT UserID, SessionID, LEAST(COUNT(*), 5) AS n FROM hits GROUP BY UserID, SessionID) AS t GROUP BY n ORDER BY n

-- case: campaigns
SELECT UTMSource, UTMCampaign, COUNT(*) AS c, COUNT(DISTINCT UserID) AS visitors FROM hits WHERE UTMSource <> '' GROUP BY UTMSource, UTMCampaign ORDER BY c DESC, 2

-- case: times between server and client
SELECT AVG(EXTRACT(epoch FROM ClientEventTime - EventTime)) AS seconds FROM hits WHERE ABS(EXTRACT(epoch FROM ClientEventTime - EventTime)) <= 3600

-- case: hosts as a part of the address
SELECT STRING_SPLIT(URL, '/')[3] AS host, COUNT(*) AS c, AVG(LEN(STRING_SPLIT(URL, '/'))) AS parts FROM hits GROUP BY host ORDER BY c DESC

-- case: hosts as PostgreSQL splits an address
SELECT (STRING_TO_ARRAY(URL, '/'))[3] AS host, COUNT(*) AS c FROM hits GROUP BY host ORDER BY c DESC

-- case: what a group of a pattern matched
SELECT (REGEXP_MATCH(Referer, '^https?://([^/]+)/'))[1] AS host, COUNT(*) AS c FROM hits GROUP BY host ORDER BY c DESC, host
---- duckdb
SELECT NULLIF(REGEXP_EXTRACT(Referer, '^https?://([^/]+)/', 1), '') AS host, COUNT(*) AS c FROM hits GROUP BY host ORDER BY c DESC, host

-- case: bits of a number
SELECT WindowWidth >> 8 AS w, SUM((WindowHeight & 3) << 2) AS low, SUM(~ClientTimeZone) AS inverted, SUM(ClientTimeZone >> 3) AS eighths
FROM hits GROUP BY w ORDER BY w
---- duckdb
SELECT WindowWidth::BIGINT >> 8 AS w, SUM((WindowHeight & 3)::BIGINT << 2) AS low, SUM(-1 - ClientTimeZone) AS inverted,
  SUM(FLOOR(ClientTimeZone / 8.0))::BIGINT AS eighths FROM hits GROUP BY w ORDER BY w

-- case: buckets between thresholds
SELECT WIDTH_BUCKET(WindowWidth, ARRAY[320, 768, 1200]) AS bucket, COUNT(*) AS c FROM hits GROUP BY bucket ORDER BY bucket
---- duckdb
SELECT CASE WHEN WindowWidth < 320 THEN 0 WHEN WindowWidth < 768 THEN 1 WHEN WindowWidth < 1200 THEN 2 ELSE 3 END AS bucket, COUNT(*) AS c
FROM hits GROUP BY bucket ORDER BY bucket

-- case: milliseconds, letters and lists
SELECT AVG(EPOCH_MS(ClientEventTime) - EPOCH_MS(EventTime)) AS ahead, COUNT(*) FILTER (WHERE LIST_CONTAINS(['RU', 'UA', NULL], BrowserCountry)) AS two,
  COUNT(*) FILTER (WHERE ORD(HitColor) > 70) AS high, COUNT(*) FILTER (WHERE PREFIX(URL, 'http://s') AND NOT SUFFIX(URL, 's')) AS ends
FROM hits WHERE ABS(EPOCH_MS(ClientEventTime) - EPOCH_MS(EventTime)) <= 3600000
