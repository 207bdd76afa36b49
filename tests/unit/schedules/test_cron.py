"""Cron expressions and when schedules fire: fields, time zones, changes of the clock, leap days,
quiet hours.
"""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.core.errors import InvalidInput
from palyra.features.schedules import cron
from palyra.features.schedules import model as schedules_model
from palyra.features.schedules.model import (
    AtTrigger,
    CronTrigger,
    EveryTrigger,
    FileTrigger,
    HookTrigger,
    Quiet,
    Schedule,
    Trigger,
)

VIENNA = ZoneInfo("Europe/Vienna")


def moment(text: str, zone: ZoneInfo = VIENNA) -> int:
    return cron.moment_of(datetime.fromisoformat(text), zone)


def coming(
    expression: str, after: str, count: int, zone: str = "Europe/Vienna", quiet: Quiet | None = None
) -> list[str]:
    schedule = made(CronTrigger(expression), zone, quiet)
    return [
        schedules_model.shown(each, zone)[4:]
        for each in schedules_model.upcoming(schedule, moment(after, ZoneInfo(zone)), count)
    ]


def made(trigger: Trigger, zone: str = "Europe/Vienna", quiet: Quiet | None = None) -> Schedule:
    return Schedule(
        schedule_id="s",
        owner="user:owner",
        name="n",
        text="t",
        trigger=trigger,
        zone=zone,
        quiet=quiet,
    )


def test_a_time_that_is_skipped_in_spring_fires_once_at_the_first_valid_moment() -> None:
    assert coming("30 2 * * *", "2026-03-28T12:00", 2) == [
        "2026-03-29 03:00 CEST",
        "2026-03-30 02:30 CEST",
    ]
    # Every quarter of the hour that is not there is one firing, which is also the one of the hour
    # after it.
    assert coming("*/15 2,3 * * *", "2026-03-29T01:59", 3) == [
        "2026-03-29 03:00 CEST",
        "2026-03-29 03:15 CEST",
        "2026-03-29 03:30 CEST",
    ]


def test_a_time_that_comes_twice_in_autumn_fires_once_the_first_time() -> None:
    assert coming("30 2 * * *", "2026-10-24T12:00", 2) == [
        "2026-10-25 02:30 CEST",
        "2026-10-26 02:30 CET",
    ]
    second_pass = moment("2026-10-25T02:30") + 3_600_000
    after = schedules_model.next_firing(made(CronTrigger("30 2 * * *")), second_pass - 60_000)
    assert schedules_model.shown(after, "Europe/Vienna")[4:] == "2026-10-26 02:30 CET"


@pytest.mark.parametrize(
    ("zone", "after", "expression", "expected"),
    [
        (
            "America/New_York",
            "2026-03-07T12:00",
            "30 2 * * *",
            ["2026-03-08 03:00 EDT", "2026-03-09 02:30 EDT"],
        ),
        (
            "America/New_York",
            "2026-10-31T12:00",
            "30 1 * * *",
            ["2026-11-01 01:30 EDT", "2026-11-02 01:30 EST"],
        ),
        (
            "Africa/Cairo",
            "2026-04-23T12:00",
            "15 0 * * *",
            ["2026-04-24 01:00 EEST", "2026-04-25 00:15 EEST"],
        ),
        (
            "Australia/Lord_Howe",
            "2026-10-03T12:00",
            "15 2 * * *",
            ["2026-10-04 02:30 +11", "2026-10-05 02:15 +11"],
        ),
        (
            "Asia/Kathmandu",
            "2026-01-01T00:00",
            "0 6 * * *",
            ["2026-01-01 06:00 +0545", "2026-01-02 06:00 +0545"],
        ),
    ],
)
def test_changes_of_the_clock_elsewhere(
    zone: str, after: str, expression: str, expected: list[str]
) -> None:
    assert coming(expression, after, 2, zone) == expected


def test_leap_days() -> None:
    assert coming("0 9 29 2 *", "2026-01-01T00:00", 2) == [
        "2028-02-29 09:00 CET",
        "2032-02-29 09:00 CET",
    ]
    # There is none in 2100.
    assert coming("0 9 29 2 *", "2096-03-01T00:00", 1) == ["2104-02-29 09:00 CET"]
    assert coming("0 9 31 * *", "2026-01-31T10:00", 2) == [
        "2026-03-31 09:00 CEST",
        "2026-05-31 09:00 CEST",
    ]


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        (
            "*/20 8-9 * * mon-fri",
            "2026-11-13T09:30",
            ["2026-11-13 09:40 CET", "2026-11-16 08:00 CET", "2026-11-16 08:20 CET"],
        ),
        (
            "0 12 1,15 jan,JUL *",
            "2026-07-01T13:00",
            ["2026-07-15 12:00 CEST", "2027-01-01 12:00 CET", "2027-01-15 12:00 CET"],
        ),
        # Either day is enough when both are given.
        (
            "0 0 13 * fri",
            "2026-11-10T00:00",
            ["2026-11-13 00:00 CET", "2026-11-20 00:00 CET", "2026-11-27 00:00 CET"],
        ),
        (
            "0 0 * * 7",
            "2026-11-13T00:00",
            ["2026-11-15 00:00 CET", "2026-11-22 00:00 CET", "2026-11-29 00:00 CET"],
        ),
        (
            "0 0 * * fri-sun",
            "2026-11-11T00:00",
            ["2026-11-13 00:00 CET", "2026-11-14 00:00 CET", "2026-11-15 00:00 CET"],
        ),
        (
            "5/25 * * * *",
            "2026-11-13T09:30",
            ["2026-11-13 09:55 CET", "2026-11-13 10:05 CET", "2026-11-13 10:30 CET"],
        ),
        (
            "@monthly",
            "2026-11-13T09:30",
            ["2026-12-01 00:00 CET", "2027-01-01 00:00 CET", "2027-02-01 00:00 CET"],
        ),
    ],
)
def test_fields(expression: str, after: str, expected: list[str]) -> None:
    assert coming(expression, after, 3) == expected


@pytest.mark.parametrize(
    "expression",
    ["", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "5-1 * * * *", "*/0 * * * *", "a * * * *",
     "1,,2 * * * *", "-1 * * * *", "1- * * * *", "* * 30 2 *", "* * 31 4,6,9,11 *", "٣ * * * *", "* * * foo *", "1/ * * * *"],
)  # fmt: skip
def test_what_is_no_expression_is_refused(expression: str) -> None:
    with pytest.raises(InvalidInput):
        cron.parse(expression)


_FIELDS = st.tuples(
    st.sampled_from(["*", "0", "*/7", "15,45", "30"]),
    st.sampled_from(["*", "2", "0", "23", "*/5", "1-3"]),
    st.sampled_from(["*", "1", "29", "31", "1-7"]),
    st.sampled_from(["*", "2", "3,10", "mar-oct"]),
    st.sampled_from(["*", "0", "mon-fri", "6"]),
).filter(lambda fields: not (fields[2] == "31" and fields[3] == "2"))


@settings(max_examples=60, deadline=None)
@given(
    fields=_FIELDS,
    zone=st.sampled_from(["Europe/Vienna", "America/New_York", "UTC", "Australia/Lord_Howe"]),
    begin=st.integers(moment("2026-01-01T00:00"), moment("2028-12-31T00:00")),
)
def test_firings_are_exactly_the_local_minutes_that_match(
    fields: tuple[str, ...], zone: str, begin: int
) -> None:
    """Against a slow and simple model: look at every minute of real time, and at those the clock on
    the wall jumps over.
    """
    expression, where = " ".join(fields), ZoneInfo(zone)
    parsed = cron.parse(expression)
    begin -= begin % 60_000
    expected: list[int] = []
    shown_before: datetime | None = None
    seen: set[datetime] = set()
    for minute in range(-180, 3 * 1_440):
        at = begin + minute * 60_000
        local = datetime.fromtimestamp(at / 1000, UTC).astimezone(where).replace(tzinfo=None)
        passed = [local]
        while shown_before is not None and passed[0] - timedelta(minutes=1) > shown_before:
            passed.insert(0, passed[0] - timedelta(minutes=1))
        new = [
            each
            for each in passed
            if each not in seen and parsed.on(each.date()) and each.hour in parsed.hours
        ]
        if any(each.minute in parsed.minutes for each in new) and minute > 0:
            expected.append(at)
        seen.update(passed)
        shown_before = local
    found: list[int] = []
    last = begin
    while (
        following := cron.next_after(parsed, last, where)
    ) is not None and following < begin + 3 * 1_440 * 60_000:
        found.append(following)
        last = following
    assert found == expected


def test_quiet_hours_put_firings_off_to_their_end_or_leave_them_out() -> None:
    night = Quiet("22:00", "07:00")
    assert coming("0 */3 * * *", "2026-11-13T20:00", 3, quiet=night) == [
        "2026-11-13 21:00 CET", "2026-11-14 07:00 CET", "2026-11-14 09:00 CET"]  # fmt: skip
    skipping = Quiet("22:00", "07:00", "skip")
    assert coming("0 */3 * * *", "2026-11-13T20:00", 3, quiet=skipping) == [
        "2026-11-13 21:00 CET", "2026-11-14 09:00 CET", "2026-11-14 12:00 CET"]  # fmt: skip
    noon = Quiet("12:00", "13:00")
    assert coming("30 * * * *", "2026-11-13T11:00", 3, quiet=noon) == [
        "2026-11-13 11:30 CET", "2026-11-13 13:00 CET", "2026-11-13 13:30 CET"]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "trigger"),
    [
        ("0 9 * * 1-5", CronTrigger("0 9 * * 1-5")),
        ("cron 0 9 * * mon", CronTrigger("0 9 * * mon")),
        ("every 2h", EveryTrigger(7_200_000, 1_000)),
        ("Every 90 minutes", EveryTrigger(5_400_000, 1_000)),
        ("hourly", EveryTrigger(3_600_000, 1_000)),
        ("daily at 9", CronTrigger("0 9 * * *")),
        ("every day at 9:05pm", CronTrigger("5 21 * * *")),
        ("weekdays at 8:30", CronTrigger("30 8 * * 1-5")),
        ("every monday at 6 pm", CronTrigger("0 18 * * 1")),
        ("at 2027-01-31 09:00", AtTrigger(moment("2027-01-31T09:00"))),
        ("2027-01-31T09:00+00:00", AtTrigger(moment("2027-01-31T09:00", ZoneInfo("UTC")))),
        ("in 20m", AtTrigger(1_000 + 1_200_000)),
        ("file /srv/in", FileTrigger("/srv/in")),
        ("webhook", HookTrigger()),
    ],
)
def test_what_a_person_writes_is_understood(said: str, trigger: Trigger) -> None:
    assert schedules_model.parse_when(said, 1_000, VIENNA) == trigger


@pytest.mark.parametrize(
    "said",
    [
        "every 10s",
        "soon",
        "every",
        "at noon",
        "in 0m",
        "daily at 25",
        "every blue moon",
        "at 2027-13-01",
    ],
)
def test_what_is_not_understood_is_said_with_examples(said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        schedules_model.parse_when(said, 1_000, VIENNA)
    assert said.split()[0] in refused.value.message


def test_of_a_long_absence_the_last_firings_are_kept_and_all_are_counted() -> None:
    hourly = made(EveryTrigger(3_600_000, 0))
    kept, count = schedules_model.due_between(hourly, 3_600_000, 24 * 3_600_000)
    assert (kept, count) == ([hour * 3_600_000 for hour in (21, 22, 23, 24)], 24)
    minutely = made(EveryTrigger(60_000, 0))
    year = 365 * 86_400_000
    kept, count = schedules_model.due_between(minutely, 60_000, year)
    assert kept == [year - minutes * 60_000 for minutes in range(8, -1, -1)]
    assert count >= 2_000


def test_after_a_short_outage_nothing_of_a_minute_schedule_is_lost() -> None:
    minutely = made(EveryTrigger(60_000, 0))
    for minutes in range(1, 6):
        kept, count = schedules_model.due_between(minutely, 60_000, minutes * 60_000)
        assert (len(kept), count) == (minutes, minutes)
