"""Time zones: a timestamp as local time and back, by the engine's rules; and the zones that are known.

Where clocks are set forward, a local time that never was is read by the rule before; where they are set back, one that
was twice is the later moment. So says the engine, and nothing here is worked out in Python.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction

from dpsql.base.intervals import MICROSECONDS_PER_DAY
from dpsql.base.time_zones import UTC, TimeZone
from dpsql.compiler.functions.calendar import LAST_TIMESTAMP, datetime_bounds
from dpsql.compiler.functions.datetime import null_outside_calendar
from dpsql.compiler.functions.function import (
    Domains,
    ScalarFunction,
    Signature,
    Types,
    quote_text,
    text_argument,
)
from dpsql.compiler.plan.expressions import Call
from dpsql.schema.model import FIRST_DAY, Domain
from dpsql.types import TEXT, TIMESTAMP, TIMESTAMPTZ

# Names of time zones that engines know, by the hours from UTC between which they have been since 1970.
#
# Written by `python -m tests.support.time_zones`, since a compilation reads no files;
# `tests/unit/compiler/functions/test_time_zones.py` asks DuckDB whether all of it is so.

_ZONES_BY_OFFSETS = {
    (-12, -12): "Etc/GMT+12",
    (-12, 12): "Kwajalein Pacific/Kwajalein",
    (-12, 13): "Pacific/Enderbury Pacific/Kanton",
    (-11, -11): "Etc/GMT+11 Pacific/Midway Pacific/Niue Pacific/Pago_Pago Pacific/Samoa US/Samoa",
    (-11, -9): "America/Adak America/Atka Pacific/Rarotonga US/Aleutian",
    (-11, -8): "America/Nome",
    (-11, 13): "Pacific/Fakaofo",
    (-11, 14): "Pacific/Apia Pacific/Kiritimati",
    (-10, -10): "Etc/GMT+10 HST Pacific/Honolulu Pacific/Johnston Pacific/Tahiti US/Hawaii",
    (-10, -9): "Pacific/Marquesas",
    (-10, -8): "America/Anchorage US/Alaska",
    (-9, -9): "Etc/GMT+9 Pacific/Gambier",
    (-9, -8): "America/Yakutat Pacific/Pitcairn",
    (-9, -7): "America/Dawson America/Juneau America/Metlakatla America/Sitka",
    (-8, -8): "Etc/GMT+8",
    (-8, -7): (
        "America/Dawson_Creek America/Ensenada America/Fort_Nelson America/Los_Angeles America/Santa_Isabel "
        "America/Tijuana America/Vancouver America/Whitehorse Canada/Pacific Canada/Yukon Mexico/BajaNorte "
        "PST8PDT US/Pacific"
    ),
    (-8, -6): "America/Inuvik",
    (-7, -7): "America/Creston America/Phoenix Etc/GMT+7 MST US/Arizona",
    (-7, -6): (
        "America/Boise America/Denver America/Edmonton America/Hermosillo America/Mazatlan America/Shiprock "
        "America/Swift_Current America/Yellowknife Canada/Mountain MST7MDT Mexico/BajaSur Navajo US/Mountain"
    ),
    (-7, -5): (
        "America/Bahia_Banderas America/Cambridge_Bay America/Chihuahua America/Ciudad_Juarez "
        "America/North_Dakota/Beulah America/North_Dakota/Center America/North_Dakota/New_Salem "
        "America/Ojinaga Chile/EasterIsland Pacific/Easter"
    ),
    (-6, -6): "America/Regina Canada/Saskatchewan Etc/GMT+6",
    (-6, -5): (
        "America/Belize America/Chicago America/Costa_Rica America/El_Salvador America/Guatemala "
        "America/Indiana/Knox America/Knox_IN America/Managua America/Matamoros America/Menominee "
        "America/Merida America/Mexico_City America/Monterrey America/Rainy_River America/Rankin_Inlet "
        "America/Resolute America/Tegucigalpa America/Winnipeg CST6CDT Canada/Central Mexico/General "
        "Pacific/Galapagos US/Central US/Indiana-Starke"
    ),
    (-6, -4): (
        "America/Cancun America/Indiana/Petersburg America/Indiana/Tell_City America/Indiana/Vincennes "
        "America/Indiana/Winamac America/Iqaluit America/Kentucky/Monticello America/Pangnirtung"
    ),
    (-5, -5): "America/Atikokan America/Cayman America/Coral_Harbour America/Panama EST Etc/GMT+5",
    (-5, -4): (
        "America/Bogota America/Caracas America/Detroit America/Eirunepe America/Fort_Wayne "
        "America/Grand_Turk America/Guayaquil America/Havana America/Indiana/Indianapolis "
        "America/Indiana/Marengo America/Indiana/Vevay America/Indianapolis America/Jamaica "
        "America/Kentucky/Louisville America/Lima America/Louisville America/Montreal America/Nassau "
        "America/New_York America/Nipigon America/Port-au-Prince America/Porto_Acre America/Rio_Branco "
        "America/Santo_Domingo America/Thunder_Bay America/Toronto Brazil/Acre Canada/Eastern Cuba EST5EDT "
        "Jamaica US/East-Indiana US/Eastern US/Michigan"
    ),
    (-4, -4): (
        "America/Anguilla America/Antigua America/Aruba America/Blanc-Sablon America/Curacao America/Dominica "
        "America/Grenada America/Guadeloupe America/Kralendijk America/La_Paz America/Lower_Princes "
        "America/Marigot America/Montserrat America/Port_of_Spain America/Puerto_Rico America/St_Barthelemy "
        "America/St_Kitts America/St_Lucia America/St_Thomas America/St_Vincent America/Tortola "
        "America/Virgin Etc/GMT+4"
    ),
    (-4, -3): (
        "America/Asuncion America/Barbados America/Boa_Vista America/Campo_Grande America/Coyhaique "
        "America/Cuiaba America/Glace_Bay America/Guyana America/Halifax America/Manaus America/Martinique "
        "America/Moncton America/Paramaribo America/Porto_Velho America/Punta_Arenas America/Santarem "
        "America/Santiago America/Thule Atlantic/Bermuda Brazil/West Canada/Atlantic Chile/Continental"
    ),
    (-4, -2): (
        "America/Argentina/Catamarca America/Argentina/ComodRivadavia America/Argentina/Cordoba "
        "America/Argentina/Jujuy America/Argentina/La_Rioja America/Argentina/Mendoza "
        "America/Argentina/Rio_Gallegos America/Argentina/Salta America/Argentina/San_Juan "
        "America/Argentina/San_Luis America/Argentina/Tucuman America/Argentina/Ushuaia America/Catamarca "
        "America/Cordoba America/Goose_Bay America/Jujuy America/Mendoza America/Miquelon America/Rosario "
        "Antarctica/Palmer Atlantic/Stanley"
    ),
    (-4, -1): "America/St_Johns Canada/Newfoundland",
    (-3, -3): "America/Cayenne Etc/GMT+3",
    (-3, -2): (
        "America/Araguaina America/Argentina/Buenos_Aires America/Bahia America/Belem America/Buenos_Aires "
        "America/Fortaleza America/Maceio America/Recife America/Sao_Paulo Brazil/East"
    ),
    (-3, -1): "America/Godthab America/Montevideo America/Nuuk",
    (-3, 0): "America/Danmarkshavn Antarctica/Rothera",
    (-2, -2): "Atlantic/South_Georgia Etc/GMT+2",
    (-2, -1): "America/Noronha Atlantic/Cape_Verde Brazil/DeNoronha",
    (-2, 0): "America/Scoresbysund",
    (-1, -1): "Etc/GMT+1",
    (-1, 0): "Africa/Bissau Africa/Monrovia",
    (-1, 1): "Africa/El_Aaiun Atlantic/Azores",
    (0, 0): (
        "Africa/Abidjan Africa/Accra Africa/Bamako Africa/Banjul Africa/Conakry Africa/Dakar Africa/Freetown "
        "Africa/Lome Africa/Nouakchott Africa/Ouagadougou Africa/Timbuktu Atlantic/Reykjavik "
        "Atlantic/St_Helena Etc/GMT Etc/GMT+0 Etc/GMT-0 Etc/GMT0 Etc/Greenwich Etc/UCT Etc/UTC Etc/Universal "
        "Etc/Zulu GMT GMT+0 GMT-0 GMT0 Greenwich Iceland UCT UTC Universal Zulu"
    ),
    (0, 1): (
        "Africa/Casablanca Africa/Sao_Tome Atlantic/Canary Atlantic/Faeroe Atlantic/Faroe Atlantic/Madeira "
        "Eire Europe/Belfast Europe/Dublin Europe/Guernsey Europe/Isle_of_Man Europe/Jersey Europe/London GB "
        "GB-Eire"
    ),
    (0, 2): "Africa/Algiers Africa/Ceuta Antarctica/Troll Europe/Lisbon Portugal WET",
    (0, 7): "Antarctica/Vostok",
    (1, 1): (
        "Africa/Bangui Africa/Brazzaville Africa/Douala Africa/Kinshasa Africa/Lagos Africa/Libreville "
        "Africa/Luanda Africa/Malabo Africa/Niamey Africa/Porto-Novo Etc/GMT-1"
    ),
    (1, 2): (
        "Africa/Ndjamena Africa/Tripoli Africa/Tunis Africa/Windhoek Arctic/Longyearbyen Atlantic/Jan_Mayen "
        "CET Europe/Amsterdam Europe/Andorra Europe/Belgrade Europe/Berlin Europe/Bratislava Europe/Brussels "
        "Europe/Budapest Europe/Busingen Europe/Copenhagen Europe/Gibraltar Europe/Ljubljana "
        "Europe/Luxembourg Europe/Madrid Europe/Malta Europe/Monaco Europe/Oslo Europe/Paris Europe/Podgorica "
        "Europe/Prague Europe/Rome Europe/San_Marino Europe/Sarajevo Europe/Skopje Europe/Stockholm "
        "Europe/Tirane Europe/Vaduz Europe/Vatican Europe/Vienna Europe/Warsaw Europe/Zagreb Europe/Zurich "
        "Libya MET Poland"
    ),
    (1, 4): "Europe/Vilnius",
    (2, 2): (
        "Africa/Blantyre Africa/Bujumbura Africa/Gaborone Africa/Harare Africa/Johannesburg Africa/Kigali "
        "Africa/Lubumbashi Africa/Lusaka Africa/Maputo Africa/Maseru Africa/Mbabane Etc/GMT-2"
    ),
    (2, 3): (
        "Africa/Cairo Africa/Juba Africa/Khartoum Asia/Amman Asia/Beirut Asia/Damascus Asia/Famagusta "
        "Asia/Gaza Asia/Hebron Asia/Jerusalem Asia/Nicosia Asia/Tel_Aviv EET Egypt Europe/Athens "
        "Europe/Bucharest Europe/Helsinki Europe/Mariehamn Europe/Nicosia Europe/Sofia Israel"
    ),
    (2, 4): (
        "Asia/Istanbul Europe/Chisinau Europe/Istanbul Europe/Kaliningrad Europe/Kiev Europe/Kyiv "
        "Europe/Minsk Europe/Moscow Europe/Riga Europe/Simferopol Europe/Tallinn Europe/Tiraspol "
        "Europe/Uzhgorod Europe/Zaporozhye Turkey W-SU"
    ),
    (2, 5): "Europe/Ulyanovsk",
    (3, 3): (
        "Africa/Addis_Ababa Africa/Asmara Africa/Asmera Africa/Dar_es_Salaam Africa/Djibouti Africa/Kampala "
        "Africa/Mogadishu Africa/Nairobi Antarctica/Syowa Asia/Aden Asia/Kuwait Asia/Riyadh Etc/GMT-3 "
        "Indian/Antananarivo Indian/Comoro Indian/Mayotte"
    ),
    (3, 4): "Asia/Baghdad Asia/Bahrain Asia/Qatar",
    (3, 5): (
        "Asia/Baku Asia/Tbilisi Asia/Tehran Asia/Yerevan Europe/Astrakhan Europe/Kirov Europe/Samara "
        "Europe/Saratov Europe/Volgograd Iran"
    ),
    (4, 4): "Asia/Dubai Asia/Muscat Etc/GMT-4 Indian/Mahe Indian/Reunion",
    (4, 5): "Asia/Kabul Indian/Mauritius",
    (4, 6): (
        "Asia/Aqtau Asia/Aqtobe Asia/Ashgabat Asia/Ashkhabad Asia/Atyrau Asia/Oral Asia/Qostanay Asia/Yekaterinburg"
    ),
    (5, 5): "Etc/GMT-5 Indian/Kerguelen Indian/Maldives",
    (5, 6): (
        "Antarctica/Mawson Asia/Calcutta Asia/Karachi Asia/Kathmandu Asia/Katmandu Asia/Kolkata "
        "Asia/Qyzylorda Asia/Samarkand Asia/Thimbu Asia/Thimphu Indian/Chagos"
    ),
    (5, 7): "Antarctica/Davis Asia/Almaty Asia/Bishkek Asia/Colombo Asia/Dushanbe Asia/Omsk Asia/Tashkent",
    (6, 6): "Asia/Kashgar Asia/Urumqi Etc/GMT-6",
    (6, 7): "Asia/Dacca Asia/Dhaka Asia/Rangoon Asia/Yangon Indian/Cocos",
    (6, 8): "Asia/Barnaul Asia/Hovd Asia/Krasnoyarsk Asia/Novokuznetsk Asia/Novosibirsk Asia/Tomsk",
    (7, 7): "Asia/Bangkok Asia/Jakarta Asia/Phnom_Penh Asia/Vientiane Etc/GMT-7 Indian/Christmas",
    (7, 8): "Asia/Ho_Chi_Minh Asia/Kuala_Lumpur Asia/Pontianak Asia/Saigon Asia/Singapore Singapore",
    (7, 9): "Asia/Choibalsan Asia/Irkutsk Asia/Ulaanbaatar Asia/Ulan_Bator",
    (8, 8): "Asia/Brunei Asia/Kuching Asia/Makassar Asia/Ujung_Pandang Etc/GMT-8",
    (8, 9): (
        "Asia/Chongqing Asia/Chungking Asia/Dili Asia/Harbin Asia/Hong_Kong Asia/Macao Asia/Macau Asia/Manila "
        "Asia/Pyongyang Asia/Shanghai Asia/Taipei Australia/Perth Australia/West Hongkong PRC ROC"
    ),
    (8, 10): "Asia/Chita Asia/Yakutsk Australia/Eucla",
    (8, 11): "Antarctica/Casey Asia/Khandyga",
    (9, 9): "Asia/Jayapura Asia/Tokyo Etc/GMT-9 Japan Pacific/Palau",
    (9, 10): "Asia/Seoul Australia/Darwin Australia/North ROK",
    (9, 11): "Asia/Vladivostok Australia/Adelaide Australia/Broken_Hill Australia/South Australia/Yancowinna",
    (9, 12): "Asia/Ust-Nera",
    (10, 10): "Antarctica/DumontDUrville Etc/GMT-10 Pacific/Chuuk Pacific/Port_Moresby Pacific/Truk Pacific/Yap",
    (10, 11): (
        "Antarctica/Macquarie Australia/ACT Australia/Brisbane Australia/Canberra Australia/Currie "
        "Australia/Hobart Australia/Lindeman Australia/Melbourne Australia/NSW Australia/Queensland "
        "Australia/Sydney Australia/Tasmania Australia/Victoria Pacific/Bougainville Pacific/Guam "
        "Pacific/Saipan"
    ),
    (10, 12): "Asia/Magadan Asia/Sakhalin Asia/Srednekolymsk Australia/LHI Australia/Lord_Howe",
    (11, 11): "Etc/GMT-11 Pacific/Guadalcanal Pacific/Pohnpei Pacific/Ponape",
    (11, 12): "Pacific/Efate Pacific/Kosrae Pacific/Nauru Pacific/Noumea",
    (11, 13): "Asia/Kamchatka Pacific/Norfolk",
    (11, 14): "Asia/Anadyr",
    (12, 12): "Etc/GMT-12 Pacific/Funafuti Pacific/Majuro Pacific/Tarawa Pacific/Wake Pacific/Wallis",
    (12, 13): "Antarctica/McMurdo Antarctica/South_Pole NZ Pacific/Auckland Pacific/Fiji",
    (12, 14): "NZ-CHAT Pacific/Chatham",
    (13, 13): "Etc/GMT-13",
    (13, 14): "Pacific/Tongatapu",
    (14, 14): "Etc/GMT-14",
}

ZONE_OFFSETS: dict[str, tuple[str, int, int]] = {
    name.lower(): (name, least, most) for (least, most), names in _ZONES_BY_OFFSETS.items() for name in names.split()
}
"""By name in lower case: the name, and the least and the most hours that local time is ahead of UTC."""

HOUR_MICROSECONDS = 3_600_000_000
MAX_OFFSET_HOURS = 24  # hours; before time was kept by zones, Manila was 16 hours behind
_RULES_FROM, _RULES_UNTIL = dt.datetime(1970, 1, 2), dt.datetime(2099, 12, 30)  # between them a zone's hours are known

UTC_NAMES = frozenset({"utc", "etc/utc", "gmt", "z", "zulu", "etc/zulu", "uct", "etc/uct", "universal", "etc/universal",
                 "etc/gmt", "greenwich", "etc/greenwich"})  # fmt: skip


def find_zone_name(spelling: str) -> str | None:
    """The zone's own spelling; None where there is no such zone."""
    zone = ZONE_OFFSETS.get(spelling.strip().lower())
    return None if zone is None else zone[0]


@dataclass(frozen=True)
class ZoneName:
    """A zone by PostgreSQL's name and by the engine's; `minutes` is how far it is ahead of UTC, if it always is."""

    shown: str
    engine_name: str
    minutes: int | None = None

    @property
    def is_utc(self) -> bool:
        return self.shown == "UTC" and self.minutes == 0


_HOURS = re.compile(r"\s*([+-]?)([0-9]{1,3})(?:\.([0-9]{1,6}))?\s*")
_POSIX_OFFSET = re.compile(r"(?:<[A-Za-z0-9+:-]+>|[A-Za-z]*)([+-]?)([0-9]{1,3})(?::([0-9]{1,2}))?(?::00?)?")
_INTERVAL_OFFSET = re.compile(r"\s*([+-]?)([0-9]{1,3})(?::([0-9]{1,2}))?(?::00?)?(?:\s*hours?)?\s*", re.IGNORECASE)
_MAX_OFFSET_MINUTES = 24 * 60 - 1


def read_zone_setting(text: str) -> ZoneName | None:
    """The zone that SET TIME ZONE names: one of IANA's, hours east of UTC, or POSIX's hours west; None: no zone.

    Of POSIX's names those with a rule for summer time are none that engines know.

    >>> read_zone_setting("europe/berlin").shown, read_zone_setting("-3.5").shown, read_zone_setting("UTC-2").minutes
    ('Europe/Berlin', '<-03:30>+03:30', 120)
    """
    number = _HOURS.fullmatch(text)
    if number is not None:
        minutes = Fraction(f"{number[2]}.{number[3] or 0}") * 60
        return None if minutes.denominator != 1 else zone_of_minutes(_signed(number[1], int(minutes)))
    if text.lower() in ZONE_OFFSETS:
        name = ZONE_OFFSETS[text.lower()][0]
        return ZoneName(name, "UTC", 0) if text.lower() in UTC_NAMES else ZoneName(name, name)
    minutes_east = read_posix_offset(text)
    return None if minutes_east is None else _fixed_zone(text, minutes_east)


def read_posix_offset(text: str) -> int | None:
    """Minutes ahead of UTC, of a zone that is written as its distance to the west, such as UTC+5; None: not one.

    >>> read_posix_offset("UTC-2"), read_posix_offset("<+0530>-05:30"), read_posix_offset("+02:00")
    (120, 330, -120)
    """
    posix = _POSIX_OFFSET.fullmatch(text)
    return None if posix is None else _minutes_within_day(-_signed(posix[1], int(posix[2]) * 60 + int(posix[3] or 0)))


_ABBREVIATIONS = {
    -660: "NUT",
    -600: "CKT HST TAHT",
    -570: "MART",
    -540: "AKST GAMT",
    -480: "AKDT PST",
    -420: "MST PDT",
    -360: "CST GALT MDT",
    -300: "ACT CDT COT EASST EAST EST PET",
    -240: "AMT AST BOT EDT GYT VET",
    -210: "NFT NST",
    -180: "ADT ARST ART BRA BRT CLST CLT FKST FKT GFT PMST PYST PYT UYT WGT",
    -150: "NDT",
    -120: "BRST FNT PMDT UYST WGST",
    -60: "AZOT EGT FNST",
    0: "AZOST EGST GMT UCT UT UTC WET Z ZULU",
    60: "BST CET MET MEZ WAT WETDST",
    120: "BDST CEST CETDST EET IST MEST MESZ METDST SAST",
    180: "EAT EEST EETDST FET IDT MSK VOLT",
    210: "IRT",
    240: "AMST AZST AZT GEST GET MSD MUT RET SCT",
    270: "AFT",
    300: "MAWT MUST MVT PKT TFT TJT TMT UZT YEKT",
    330: "LKT",
    345: "NPT",
    360: "ALMT BDT BTT IOT KGST KGT OMSST OMST PKST UZST XJT YEKST",
    390: "MMT",
    420: "ALMST CXT DAVT ICT KRAST KRAT NOVST NOVT WAST",
    480: "AWST BNT BORT CCT HKT IRKST IRKT MYT PHT SGT ULAT WADT",
    525: "ACWST",
    540: "AWSST JAYT JST KST PWT ULAST WDT YAKST YAKT",
    570: "ACST CAST",
    600: "AEST CHUT DDUT KDT LIGT MPT PGT TRUT VLAST VLAT YAPT",
    630: "ACDT ACSST CADT LHST SADT",
    660: "AEDT AESST KOST LHDT MAGST MAGT PONT VUT",
    720: "ANAST ANAT FJT GILT MHT NZST NZT PETST PETT TVT WAKT WFT",
    765: "CHAST",
    780: "FJST NZDT TKT TOT",
    825: "CHADT",
    840: "LINT",
}  # fmt: skip
"""Zones by the letters that are said of them, as PostgreSQL's default list has them, by minutes ahead of UTC."""

ABBREVIATION_OFFSETS = {word.lower(): minutes for minutes, words in _ABBREVIATIONS.items() for word in words.split()}


def read_fixed_zone(text: str) -> int | None:
    """Minutes ahead of UTC, of letters such as CEST, or of POSIX's distance to the west; None: another zone, or none.

    >>> read_fixed_zone("cest"), read_fixed_zone("UTC-2"), read_fixed_zone("Europe/Berlin")
    (120, 120, None)
    """
    folded = text.strip()
    if folded.lower() in ZONE_OFFSETS:
        return None
    known = ABBREVIATION_OFFSETS.get(folded.lower())
    return read_posix_offset(folded) if known is None else known


_POSIX_SUMMER = re.compile(r"(?:<[A-Za-z0-9+:-]+>|[A-Za-z]+)[+-]?[0-9:]+(?:<[A-Za-z0-9+:-]+>|[A-Za-z]+).*")


def has_posix_summer_time(text: str) -> bool:
    """Whether it is a name of POSIX's with a rule for summer time, which PostgreSQL knows and no engine does.

    >>> has_posix_summer_time("CET-1CEST,M3.5.0,M10.5.0/3"), has_posix_summer_time("UTC-2")
    (True, False)
    """
    return _POSIX_SUMMER.fullmatch(text) is not None and text.lower() not in ZONE_OFFSETS


def read_interval_offset(text: str) -> int | None:
    """Minutes ahead of UTC, of an interval such as +02:00, which counts to the east.

    >>> read_interval_offset("+02:00"), read_interval_offset("-5"), read_interval_offset("1 day")
    (120, -300, None)
    """
    hours = _INTERVAL_OFFSET.fullmatch(text)
    return None if hours is None else _minutes_within_day(_signed(hours[1], int(hours[2]) * 60 + int(hours[3] or 0)))


def zone_of_minutes(minutes: int) -> ZoneName | None:
    """The zone that is always so far ahead of UTC, by the name that PostgreSQL makes for it."""
    if _minutes_within_day(minutes) is None:
        return None
    ahead, behind = _format_offset(minutes), _format_offset(-minutes or 0)
    return _fixed_zone(f"<{ahead}>{behind if minutes else '-00'}", minutes)


def engine_zone_of(minutes: int) -> str:
    """The engine's name of a zone that is always so far ahead of UTC.

    >>> engine_zone_of(330), engine_zone_of(0)
    ('GMT+05:30', 'UTC')
    """
    hours, rest = divmod(abs(minutes), 60)
    return f"GMT{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}" if minutes else "UTC"


def _fixed_zone(shown: str, minutes: int) -> ZoneName:
    return ZoneName(shown, engine_zone_of(minutes), minutes)


def _minutes_within_day(minutes: int) -> int | None:
    return minutes if abs(minutes) <= _MAX_OFFSET_MINUTES else None


def _signed(sign: str, number: int) -> int:
    return -number if sign == "-" else number


def _format_offset(minutes: int) -> str:
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}" + (f":{rest:02}" if rest else "")


def suggest_zones(spelling: str) -> list[str]:
    """Names that are perhaps meant: those like it, and those of a place of that name."""
    folded = spelling.strip().lower().replace(" ", "_")
    names = [name for name in ZONE_OFFSETS if folded and folded == name.rpartition("/")[2]]
    names += [name for name in get_close_matches(folded, ZONE_OFFSETS, n=3, cutoff=0.75) if name not in names]
    return [ZONE_OFFSETS[name][0] for name in names[:3]]


_session_zone: ContextVar[TimeZone] = ContextVar("session_zone", default=UTC)
_now: ContextVar[dt.datetime | None] = ContextVar("now", default=None)


@contextmanager
def session_zone_scope(zone: TimeZone, now: dt.datetime | None = None) -> Iterator[None]:
    """A statement is compiled within, whose session has this time zone, at this time."""
    tokens = _session_zone.set(zone), _now.set(now)
    try:
        yield
    finally:
        _session_zone.reset(tokens[0])
        _now.reset(tokens[1])


def local_time() -> dt.datetime | None:
    """What the session's clocks show, as far as the time is known."""
    now = _now.get()
    return None if now is None else session_zone().to_local(now)


def session_zone() -> TimeZone:
    """The time zone of the statement that is compiled."""
    return _session_zone.get()


def _timezone_signature(types: Types) -> Signature | None:
    zone, at = types
    if zone != TEXT or at not in (TIMESTAMP, TIMESTAMPTZ):
        return None
    return Signature(types, TIMESTAMP if at == TIMESTAMPTZ else TIMESTAMPTZ)


def _check_timezone(call: Call) -> str | None:
    spelling = text_argument(call, 0)
    return None if spelling.lower() in ZONE_OFFSETS else f'there is no time zone "{spelling}"'


def _render_timezone(call: Call, args: list[str]) -> str:
    return null_outside_calendar(
        f"timezone({quote_text(ZONE_OFFSETS[text_argument(call, 0).lower()][0])}, {args[1]})", call.type
    )


def _timezone_domain(call: Call, args: Domains) -> Domain:
    """The bounds, moved by the least and the most that the zone is ahead of UTC, or behind it on the way back."""
    bounds = datetime_bounds(args[1])
    if bounds is None:
        return Domain(call.type, True)
    _, lowest, highest = ZONE_OFFSETS[text_argument(call, 0).lower()]
    if not (bounds[0] >= _RULES_FROM and bounds[1] <= _RULES_UNTIL):
        lowest, highest = -MAX_OFFSET_HOURS, MAX_OFFSET_HOURS
    if call.type == TIMESTAMPTZ:
        lowest, highest = -highest, -lowest
    lower, upper = args[1].bounds[0] + lowest * HOUR_MICROSECONDS, args[1].bounds[1] + highest * HOUR_MICROSECONDS
    first, last = Fraction(FIRST_DAY * MICROSECONDS_PER_DAY), Fraction(LAST_TIMESTAMP)
    inside = lower >= first and upper <= last
    return Domain(call.type, args[1].nullable or not inside, max(lower, first), min(upper, last))


TIME_ZONE_FUNCTIONS = (
    ScalarFunction(
        "timezone",
        "timezone('Europe/Berlin', at)",
        _timezone_signature,
        _timezone_domain,
        _render_timezone,
        2,
        2,
        frozenset({0}),
        _check_timezone,
    ),
)
