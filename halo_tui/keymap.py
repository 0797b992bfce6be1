"""Every action of the workbench, once: bindings, footer, help and palette are all made from this table.

Keys are those that plain terminals can send. Shift with a function key arrives there as another function key (Shift+F5
as F17), so those are bound to both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from textual.binding import Binding

Where: TypeAlias = Literal["everywhere", "workbench", "editor", "list"]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do.

    `command` is the method `action_<command>` that does it. `label` stands in the footer; without one the action
    is not shown there. Editor and list actions are Textual's own or the widget's, listed for the help.
    """

    id: str
    title: str
    keys: tuple[str, ...]
    where: Where = "workbench"
    command: str = ""
    label: str = ""
    about: str = ""

    @property
    def shown_key(self) -> str:
        """The first key as people write it: `Ctrl+S`, `F5`."""
        return (
            "+".join(_KEY_NAMES.get(part, part.capitalize()) for part in self.keys[0].split("+")) if self.keys else ""
        )


_KEY_NAMES: Final = {"pagedown": "PageDown", "pageup": "PageUp", "slash": "/"}

ACTIONS: Final[tuple[Action, ...]] = (
    Action("help.show", "Help", ("f1",), command="help", label="Help", about="All keys and what they do"),
    Action("run.start", "Run", ("f5",), command="run", label="Run", about="Run a pipeline of this file"),
    Action(
        "run.stop", "Stop the run", ("shift+f5", "f17"), command="stop", label="Stop", about="Cancel what it waits for"
    ),
    Action("run.answer", "Answer", ("f4",), command="answer", label="Answer", about="Answer what the run asks"),
    Action("problem.next", "Next problem", ("f8",), command="next_problem", about="Go to it in the text"),
    Action("problem.previous", "Previous problem", ("shift+f8", "f20"), command="previous_problem"),
    Action("pane.next", "Next pane", ("f6",), command="next_pane", label="Pane", about="Editor, problems, run panes"),
    Action("pane.previous", "Previous pane", ("shift+f6", "f18"), command="previous_pane"),
    Action("pane.editor", "Show the editor", ("alt+1",), command="show_pane('editor')"),
    Action("pane.stages", "Show the stages", ("alt+2",), command="show_pane('stages')"),
    Action("pane.output", "Show the output", ("alt+3",), command="show_pane('output')"),
    Action("pane.data", "Show the data", ("alt+4",), command="show_pane('data')"),
    Action(
        "pane.inbox", "Show the inbox", ("alt+5",), command="show_pane('inbox')", about="Open questions of all runs"
    ),
    Action("pane.runs", "Show the runs", ("alt+6",), command="show_pane('runs')", about="Kept runs, to look back at"),
    Action(
        "pane.call",
        "Show the call",
        ("alt+7",),
        command="show_pane('call')",
        about="What the chosen stage sent to its model, and the reply",
    ),
    Action(
        "replay.back", "Stage before", ("alt+left",), command="step(-1)", label="Back", about="In a run looked back at"
    ),
    Action(
        "replay.forward", "Stage after", ("alt+right",), command="step(1)", label="On", about="In a run looked back at"
    ),
    Action(
        "replay.continue",
        "Continue the run from here",
        ("ctrl+r",),
        command="continue_run",
        label="Continue",
        about="With the program as it is now; first shows what is reused",
    ),
    Action("replay.close", "Close the run looked back at", ("alt+0",), command="close_replay", label="Close"),
    Action("output.copy", "Copy the output", (), command="copy_output", about="To the terminal's clipboard"),
    Action("file.save", "Save", ("ctrl+s",), command="save", label="Save", about="Write the file in one step"),
    Action("view.theme", "Light or dark", (), command="switch_theme", about="Switch between the two themes"),
    Action(
        "app.palette", "All actions", ("ctrl+p",), command="palette", label="Actions", about="Find an action by name"
    ),
    Action("app.quit", "Quit", ("ctrl+q",), "everywhere", "quit", "Quit", "Asks before work is lost"),
    Action("edit.undo", "Undo", ("ctrl+z",), "editor"),
    Action("edit.redo", "Redo", ("ctrl+y",), "editor"),
    Action("edit.copy", "Copy the selection", ("ctrl+c",), "editor"),
    Action("edit.cut", "Cut the selection", ("ctrl+x",), "editor"),
    Action("edit.paste", "Paste", ("ctrl+v",), "editor"),
    Action("edit.delete_line", "Delete the line", ("ctrl+shift+k",), "editor"),
    Action("edit.select_all", "Select all", ("f7",), "editor"),
    Action("list.choose", "Go to, open or close", ("enter",), "list"),
)


def bindings(where: Where) -> Iterator[Binding]:
    """The bindings of the workbench, or of the application; they come before those of the focused widget."""
    for action in ACTIONS:
        if action.where == where and action.keys:
            yield Binding(
                ",".join(action.keys),
                action.command,
                action.label or action.title,
                show=bool(action.label),
                key_display=action.shown_key,
                priority=True,
                tooltip=action.about or action.title,
                id=action.id,
            )


def palette() -> tuple[Action, ...]:
    """The actions that the palette offers."""
    return tuple(action for action in ACTIONS if action.command and action.id != "app.palette")
