"""What a client says before it may ask: settings of its connection."""

from __future__ import annotations

from dpsql.pgwire.startup import read_opening, settings_of


def _settings(**parameters: str) -> dict[str, str]:
    given = {"user": "ana", "database": "hospital", **parameters}
    return settings_of(given, read_opening(given))


def test_the_zone_of_the_clients_machine_is_no_wish() -> None:
    assert _settings(TimeZone="Europe/Berlin", DateStyle="ISO") == {"datestyle": "ISO"}


def test_a_zone_that_is_wished_for_is_not_forgotten() -> None:
    assert _settings(options="-c TimeZone=Europe/Berlin") == {"timezone": "Europe/Berlin"}


def test_a_parameter_of_its_own_goes_before_options() -> None:
    assert _settings(options="-c epsilon=0.2 -c delta=0", epsilon="0.1") == {"epsilon": "0.1", "delta": "0"}
