"""Progress bars drawn as widgets appear in the log."""

from __future__ import annotations

from typing import Any

from benchpool.runner.shown_bars import EVERY_S, ShownBars

Message = tuple[str, dict[str, Any]]


def made(comm: str, model: str, **state: Any) -> Message:
    return "comm_open", {"comm_id": comm, "data": {"state": {"_model_name": model, **state}}}


def moved(comm: str, **state: Any) -> Message:
    return "comm_msg", {"comm_id": comm, "data": {"method": "update", "state": state}}


def box(name: str, most: int) -> list[Message]:
    """Return the messages of tqdm for a new bar: two labels, the bar and their box."""
    parts = [f"{name}-{part}" for part in ("left", "bar", "right")]
    return [
        made(parts[0], "HTMLModel", value=""),
        made(parts[1], "FloatProgressModel", value=0, max=most),
        made(parts[2], "HTMLModel", value=""),
        made(name, "HBoxModel", children=[f"IPY_MODEL_{each}" for each in parts]),
    ]


def at(name: str, step: int, most: int) -> list[Message]:
    left = f"{name}:\u2007\u2007{100 * step // most}%"
    right = f"\u2007{step}/{most}\u2007[00:01&lt;00:01, 9.0it/s]"
    values = {"bar": step, "left": left, "right": right}
    return [moved(f"{name}-{part}", value=value) for part, value in values.items()]


def lines(bars: ShownBars, messages: list[Message], now: float) -> list[str]:
    return [line for each in messages if (line := bars.line(*each, now))]


def test_widget_bar_is_logged_when_it_moves() -> None:
    bars = ShownBars()
    assert lines(bars, box("epochs", 4), 0.0) == []
    printed = lines(bars, at("epochs", 1, 4), 1.0)
    assert printed == ["\repochs:  25%|##5       | 1/4 [00:01<00:01, 9.0it/s]"]


def test_widget_bars_are_rate_limited_and_logged_at_end() -> None:
    bars = ShownBars()
    lines(bars, [*box("outer", 2), *box("inner", 100)], 0.0)
    several = [line for n in range(100) for line in lines(bars, at("inner", n, 100), 1 + n / 100)]
    assert len(several) == 1
    assert len(lines(bars, at("outer", 1, 2), 1.5)) == 1
    assert lines(bars, at("inner", 100, 100), 1.5)[0].startswith("\rinner:  100%|##########|")
    assert len(lines(bars, at("outer", 1, 2), 1.5 + EVERY_S)) == 1


def test_other_widgets_and_malformed_messages_are_ignored() -> None:
    bars = ShownBars()
    odd: list[Message] = [
        made("slider", "IntSliderModel", value=3),
        moved("slider", value=4),
        moved("unknown", value=4),
        ("comm_msg", {"comm_id": "x", "data": {"method": "custom"}}),
        ("comm_msg", {"comm_id": "x", "data": {"state": None}}),
        ("display_data", {"data": {"text/html": "<progress value='x' max='4'></progress>"}}),
        ("display_data", {}),
    ]
    assert lines(bars, odd, 0.0) == []
