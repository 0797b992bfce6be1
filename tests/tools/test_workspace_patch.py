"""Unified diffs are read and applied exactly (pure)."""

from __future__ import annotations

from difflib import unified_diff

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from halo_runtime.errors import ToolError
from halo_runtime.tools.workspace.edit import lines_of, replace_once
from halo_runtime.tools.workspace.patch import apply_hunks, parse_patch

LINES = st.lists(
    st.sampled_from(["a", "b", "", "-- ", "--- x", "+++ y", "@@ -1 +1 @@", "\\ No", "\u2028", " "]), max_size=12
)
ENDS = st.sampled_from(["", "\n"])


def diff(old: str, new: str, context: int) -> str:
    """What `diff -u` writes."""
    written = ""
    for line in unified_diff(lines_of(old), lines_of(new), "a/x", "b/x", n=context):
        written += line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
    return written


@given(LINES, LINES, ENDS, st.integers(0, 4))
@example(["a"], [], "\n", 0)
@example([], ["a"], "", 3)
def test_a_diff_of_two_texts_makes_one_the_other(old: list[str], new: list[str], end: str, context: int) -> None:
    before, after = "\n".join(old) + (end if old else ""), "\n".join(new)
    patch = diff(before, after, context)
    if patch:
        [parsed] = parse_patch(patch)
        assert apply_hunks(before, parsed) == after


@given(st.text(), st.text("@-+ \n\\1,a", max_size=200))
def test_whatever_is_given_is_applied_or_refused(text: str, junk: str) -> None:
    for patch in (junk, f"--- a/x\n+++ b/x\n{junk}", f"--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n{junk}"):
        try:
            for parsed in parse_patch(patch):
                apply_hunks(text, parsed)
        except ToolError:
            pass


HEAD = "--- a/x\n+++ b/x\n"


def test_a_hunk_is_found_where_its_context_has_moved_to() -> None:
    [patch] = parse_patch(f"{HEAD}@@ -1,2 +1,2 @@\n a\n-b\n+B\n@@ -3,2 +3,2 @@\n c\n-d\n+D\n")
    assert apply_hunks("new\nnew\na\nb\nc\nd\n", patch) == "new\nnew\na\nB\nc\nD\n"


def test_the_nearest_of_equal_places_is_taken() -> None:
    [patch] = parse_patch(f"{HEAD}@@ -5 +5 @@\n-a\n+A\n")
    assert apply_hunks("a\nx\nx\na\nx\nx\nx\na\n", patch) == "a\nx\nx\nA\nx\nx\nx\na\n"


def test_models_forget_that_a_last_line_has_no_end() -> None:
    [patch] = parse_patch(f"{HEAD}@@ -1,2 +1,2 @@\n-a\n+A\n b\n")
    assert apply_hunks("a\nb", patch) == "A\nb\n"


def test_fences_times_and_prose_around_a_diff_do_not_matter() -> None:
    text = "Here:\n```diff\n--- x\t2026-01-01\n+++ x\t2026-01-02\n@@ -1 +1 @@ def f\n-a\n+b\n```\n"
    [patch] = parse_patch(text)
    assert (patch.old, patch.new, apply_hunks("a\n", patch)) == ("x", "x", "b\n")


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ("", "the patch holds no changes"),
        ("just prose", "the patch holds no changes"),
        ("@@ -1 +1 @@\n-a\n+b\n", "line 1 of the patch: a hunk without"),
        (HEAD, "line 3 of the patch: no hunk"),
        (f"{HEAD}@@ one @@\n", "a hunk begins with a line such as"),
        (f"{HEAD}@@ -1,3 +1 @@\n-a\n+b\n*", "the hunk says 3 old and 1 new lines, but has 1 and 1"),
        (f"{HEAD}@@ -1 +1 @@\n-a\n+b\n+c\n", "line 6 of the patch: the hunk says 1 old and 1 new lines, but has more"),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "neither before nor after"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "changes of permissions are not supported"),
        ("diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc\n", "links, programs"),
        ("diff --git a/x b/x\nindex 1..2\nGIT binary patch\n", "changes to binary files are not supported"),
        ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "changes to binary files are not supported"),
        ("diff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to y\n", "copies are not supported"),
    ],
)  # fmt: skip
def test_what_is_no_patch_is_refused_with_its_line(patch: str, said: str) -> None:
    with pytest.raises(ToolError) as caught:
        parse_patch(patch)
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("hunk", "said"),
    [
        ("@@ -1 +1 @@\n-retrun x\n+y\n", "the file has no line `retrun x`; the closest is line 2: `return x`"),
        ("@@ -1,2 +1 @@\n return x\n-def f():\n", "its lines stand in the file, but not together"),
        ("@@ -9,0 +10 @@\n+x\n", "it adds after line 9, where the file has only 2 lines"),
    ],
)
def test_a_hunk_that_does_not_fit_says_why(hunk: str, said: str) -> None:
    [patch] = parse_patch(HEAD + hunk)
    with pytest.raises(ToolError) as caught:
        apply_hunks("def f():\nreturn x\n", patch)
    assert said in caught.value.message
    assert caught.value.message.startswith("hunk 1 of `x` does not fit: ")


@given(st.text("ab\n", max_size=12), st.text("ab\n", max_size=4), st.text("ab\n", max_size=4))
def test_an_edit_changes_one_place_or_is_refused(text: str, old: str, new: str) -> None:
    places = [place for place in range(len(text)) if old and text.startswith(old, place)]
    try:
        made, line = replace_once(text, old, new, "x")
    except ToolError:
        assert len(places) != 1 or old == new
        return
    [place] = places
    assert made == text[:place] + new + text[place + len(old) :]
    assert line == text[:place].count("\n") + 1
