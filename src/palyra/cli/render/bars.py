"""Bars for tables on a terminal."""

_EIGHTHS = " ▏▎▍▌▋▊▉█"


_BAR = 20


def bar(value: int, most: int) -> str:
    """A bar as long as its share of the greatest one, to an eighth of a character."""
    eighths = round(value / most * _BAR * 8) if most else 0
    return (_EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8]).strip() or ("▏" if value else "")
