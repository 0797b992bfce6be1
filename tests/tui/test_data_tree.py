"""The values of a run as a tree."""

from __future__ import annotations

from halo_tui.models.data import MAX_CHILDREN, DataTree
from halo_tui.models.run import RunView


def tree(data: dict[str, object]) -> DataTree:
    shown = DataTree()
    shown.show(RunView("completed", data=data, input={"text": "hi"}, current="now", meta={"cost": 0}))
    return shown


def names(shown: DataTree) -> list[str]:
    return [".".join(row.path) for row in shown.rows()]


def test_results_and_arguments_are_open_at_first() -> None:
    assert names(tree({"summary": "x"})) == ["data", "data.summary", "input", "input.text", "current", "meta"]


def test_a_value_opens_and_closes() -> None:
    shown = tree({"Bot": {"say": [1, 2]}})
    row = next(row for row in shown.rows() if row.path == ("data", "Bot"))
    shown.toggle(row)
    assert names(shown)[:3] == ["data", "data.Bot", "data.Bot.say"]
    shown.toggle(row)
    assert names(shown)[:3] == ["data", "data.Bot", "input"]


def test_scalars_and_empty_values_do_not_open() -> None:
    shown = tree({"none": None, "empty": {}})
    assert [row.open for row in shown.rows() if row.path[:1] == ("data",)] == [True, None, None]


def test_what_is_open_stays_open_in_the_next_run() -> None:
    shown = tree({"Bot": {"say": 1}})
    shown.toggle(next(row for row in shown.rows() if row.path == ("data", "Bot")))
    shown.show(RunView("completed", data={"Bot": {"say": 2}}))
    assert "data.Bot.say" in names(shown)


def test_a_huge_list_is_listed_by_its_head() -> None:
    shown = tree({"many": list(range(MAX_CHILDREN + 7))})
    shown.toggle(next(row for row in shown.rows() if row.path == ("data", "many")))
    assert shown.sections["data"]["many"][-1] == MAX_CHILDREN + 6
    assert '"7 more"' in ["".join(text for text, _ in row.line) for row in shown.rows()][MAX_CHILDREN + 2]


def test_the_figures_of_a_run_are_unknown_while_it_goes_on() -> None:
    shown = DataTree()
    shown.show(RunView("running", input={"a": 1}, current=2))
    assert list(shown.sections) == ["data", "input", "current"]


def test_without_a_run_there_is_nothing() -> None:
    shown = DataTree()
    shown.show(RunView())
    assert names(shown) == []
