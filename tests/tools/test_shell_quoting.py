"""Values in bash scripts: what the command sees is the value, whatever stands around its place."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_runtime.errors import ToolError
from halo_runtime.tools.shell.quoting import fill_script

HOSTILE = (
    "",
    "plain",
    " two  words ",
    "x\"; touch made; '; touch made; $(touch made) `touch made` && touch made | tee made > made #",
    "'",
    '"',
    "\\",
    "\\\\\n",
    "$(touch made)",
    "`touch made`",
    "${IFS}",
    "$HALO_VALUE_1",
    "*",
    "~",
    "{a,b}",
    "-n",
    "!!",
    "# no comment",
    "\nEOF\ntouch made\n",
    "a[$(touch made)]",
    "{{again}}",
    "é 漢字 🙂 \u202e \r\t\x1b[31m",
)

# A script with `@` for the value, and what it prints for it: one line of written words, `@` for the value again.
PLACES = {
    "bare": ("printf %s @", "@"),
    "part of a word": ("printf %s a@b@c", "a@b@c"),
    "double quotes": ('printf %s "<@>"', "<@>"),
    "single quotes": ("printf %s '<@>'", "<@>"),
    "single quotes alone": ("printf %s '@'", "@"),
    "ansi quotes": (r"printf %s $'<\'\t@>'", "<'\t@>"),
    "locale quotes": ('printf %s $"<@>"', "<@>"),
    "after an escaped backslash": (r"printf %s \\@", "\\@"),
    "after a backslash": (r"printf %s a\@", "a@"),
    "after a backslash in double quotes": (r'printf %s "C:\@"', "C:\\@"),
    "after an escaped dollar sign": (r'printf %s "\$@"', "$@"),
    "after a dollar sign in single quotes": ("printf %s '$@'", "$@"),
    "after an escaped quote": (r'printf %s "\"@\""', '"@"'),
    "substitution": ('printf %s "$(printf %s. @)"', "@."),
    "double quotes in a substitution in double quotes": ('printf %s "a$(printf %s. "b@c")d"', "ab@c.d"),
    "single quotes in a substitution in double quotes": ("""printf %s "$(printf %s. '<@>')" """, "<@>."),
    "backticks": ("""printf %s "`printf %s. '<@>'`" """, "<@>."),
    "a parenthesis in quotes in a substitution": ('printf %s "$(printf %s. ")@(")"', ")@(."),
    "case in a substitution": ('printf %s "$(case a in (b) ;; a) printf %s. "@";; esac)"', "@."),
    "subshell": ("(printf %s '<@>')", "<@>"),
    "subshell in a substitution": ("printf %s \"$((printf %s. '<@>'); true)\"", "<@>."),
    "comment": ("printf %s a # it's @\nprintf %s '@'", "a@"),
    "number sign in a word": ("printf %s a#'@'", "a#@"),
    "here-document": ("cat <<EOF\n<'@' \"@\" \\$ \\\\@>\nEOF\n", "<'@' \"@\" $ \\@>\n"),
    "here-document with tabs": ("cat <<-EOF && printf %s '@'\n\t<@>\n\tEOF\n", "<@>\n@"),
    "two here-documents": ("cat <<A - <<B; printf %s '@'\n'a\nA\n'b@\nB\nprintf %s '@'", "'b@\n@@"),
    "after a literal here-document": ("cat <<'EOF'\nit's $x\nEOF\nprintf %s '@'", "it's $x\n@"),
    "here-string": ("cat <<< '<@>'", "<@>\n"),
    "assignment": ("x=@; printf %s \"$x\"", "@"),
    "for": ("for x in @ @; do printf %s. \"$x\"; done", "@.@."),
    "if": ("if [ '@' = @ ]; then printf %s '@'; fi", "@"),
    "test": ("[[ '@' == @ && a < b ]] && printf %s '@'", "@"),
    "case": ("case @ in @) printf %s '@';; esac", "@"),
    "array": ('x=(@ "@"); printf %s. "${x[0]}" "${x[1]}"', "@.@."),
    "function": ('f() { printf %s "$1"; }; f @', "@"),
    "export": ('export x="@"; printf %s "$x"', "@"),
    "process substitution": ("cat <(printf %s '<@>')", "<@>"),
    "argument after code": ("""bash -c 'printf %s "$1"' _ @""", "@"),
    "after a special parameter": ('printf %s "$?@"', "0@"),
    "after arithmetic": ('i=1; printf %s "$((i + (1)))@"', "2@"),
    "after braces": ("""printf %s "${x:-"}"}@" '@'""", "}@@"),
    "subshells in a subshell": ('printf %s "$( ((printf %s. "@"); true); printf %s. "<@>")"', "@.<@>."),
    "elements over lines": ("x=(a # it's\n '@' <(:)\n); printf %s \"${x[1]}\"", "@"),
    "pattern": ("case 'long' in [@]) ;; *) printf %s '@';; esac", "@"),
    "elements of an array": ('declare -A m=([k]=@); printf %s "${m[k]}"', "@"),
    "input of a script": ("""cat <<EOF | bash -c 'cat; printf %s "$1"' _ @\n<@>\nEOF""", "<@>\n@"),
    "names of interpreters": ("printf %s @ | grep -q bash; printf %s @", "@"),
    "option of a script": ("""bash -c 'printf %s "$2"' script.sh -c @""", "@"),
    "after an interpreter": ("echo : | bash; printf %s '@'", "@"),
    "continued line": ("printf %s \\\n '@'", "@"),
}  # fmt: skip


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scripts")


def printed(folder: Path, script: str, value: str) -> str:
    """What a script prints with `value` at each `@`."""
    written = tuple(script.split("@"))
    filled = fill_script(written, (value,) * (len(written) - 1))
    process = subprocess.run(
        ["/bin/bash", "-c", filled.text],
        env={"PATH": os.environ["PATH"], **filled.variables},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert process.stderr == b""
    assert not list(folder.iterdir()), "something was run"
    return process.stdout.decode()


def as_printed(expected: str, value: str) -> str:
    return value.join(expected.split("@"))


@pytest.mark.parametrize("place", PLACES)
def test_a_hostile_value_is_printed_as_it_is(folder: Path, place: str) -> None:
    script, expected = PLACES[place]
    for value in HOSTILE:
        assert printed(folder, script, value) == as_printed(expected, value)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
PIECES = [
    *"'\"\\$`(){}[]<>|&;#*?~! \n\tEOF=-",
    "$(touch made)",
    "\nEOF\n",
    "[[ ",
    " -eq 1",
    " ]]",
    "x[",
    "]=",
    "$((",
    "((",
    "))",
]
INJECTIONS = ["x'\"; touch made; $(touch made) `touch made`\nEOF\ntouch made #", "a[$(touch made)]"]
syntax = st.lists(st.sampled_from(PIECES)).map("".join)


@settings(max_examples=60)
@given(place=st.sampled_from(sorted(PLACES)), value=texts | syntax)
def test_any_value_in_any_place_is_printed_as_it_is(folder: Path, place: str, value: str) -> None:
    script, expected = PLACES[place]
    assert printed(folder, script, value) == as_printed(expected, value)


REFUSED = (
    'eval "echo @"',
    "bash -c 'echo @'",
    "/bin/sh -ec \"echo '@'\"",
    "find . -exec sh -c 'echo @' \\;",
    "timeout 5 bash -o errexit -c -- 'echo @'",
    "if true; then eval @; fi",
    "x=1 eval @",
    "command eval @",
    "a; eval @",
    "$(eval @)",
    '"$(eval @)"',
    "trap '@' EXIT",
    "let x=@",
    "declare @",
    "declare -i x=@",
    "export @",
    'declare "x[@]=1"',
    "read @",
    "unset @",
    "printf -v @ x",
    "[ -v @ ]",
    "python3 -c 'print(\"@\")'",
    "perl -e'print @'",
    "bash <<EOF\necho @\nEOF",
    "sh -s <<EOF\necho @\nEOF",
    "cat <<EOF | bash\necho @\nEOF",
    'bash <<< "echo @"',
    'echo "@" | sh',
    "cat @ | sudo /bin/bash -e",
    "echo @ | tee x | python3 -",
    "echo @ | bash 2>&1",
    "bash /dev/stdin <<< @",
    "bash <(echo @)",
    "source <(echo @)",
    ". /dev/stdin <<< @",
    'eval "$(echo @)"',
    "bash -c `echo @`",
    "su - me -c 'echo @'",
    "env X=1 timeout 5 sh <<EOF\necho @\nEOF",
    "@ @",
    "sudo @ @",
    "printf @ @",
    "[ @ @ ]",
    "wait -p @",
    "echo $@",
    'echo "$@"',
    "echo ${x:-@}",
    'echo "${x:-"@"}"',
    "echo ${x[@]}",
    r"echo $'\@'",
    "echo `echo \\\\ @`",
    "cat <<'EOF'\n@\nEOF",
    "cat <<@\nx\n",
    "cat <<'@'\nx\n",
    "echo '@",
    'echo "@',
    "echo `@",
    "echo $(@",
    "echo ${x @",
    "(echo @",
)


@pytest.mark.parametrize("script", REFUSED)
def test_where_a_value_would_be_code_it_is_refused_whatever_it_is(script: str) -> None:
    written = tuple(script.split("@"))
    with pytest.raises(ToolError):
        fill_script(written, ("1",) * (len(written) - 1))


CALCULATED = {
    "echo $((@ + 1))": "5\n",
    "echo $[@ + 1]": "5\n",
    '((@ > 3)) && echo "yes"': "yes\n",
    "[[ @ -eq 4 ]] && echo yes": "yes\n",
    "[[ '@' -gt 3 && b > a ]] && echo yes": "yes\n",
    "x[@]=z; echo ${x[4]}": "z\n",
    'x["@"]=z; echo ${x[4]}': "z\n",
    "x=(['@']=z); echo ${x[4]}": "z\n",
    "x=([@]=z); echo ${x[4]}": "z\n",
    "for ((i=3; i<@; i++)); do echo $i; done": "3\n",
    'echo "$((1 + (@)))"': "5\n",
}


@pytest.mark.parametrize("script", CALCULATED)
def test_where_bash_calculates_a_value_must_be_a_whole_number(folder: Path, script: str) -> None:
    assert printed(folder, script, "4") == CALCULATED[script]
    for value in ("a[$(touch made)]", "x", "", "1 + 1", "1.5", "٤"):
        with pytest.raises(ToolError, match="whole number"):
            printed(folder, script, value)


def test_what_bash_calculates_with_may_come_from_no_command_with_another_value() -> None:
    with pytest.raises(ToolError, match="whole number"):
        fill_script(("echo $(( $(echo ", ") ))"), ("a[$(touch made)]",))


def test_a_refusal_shows_the_place_and_never_the_value() -> None:
    with pytest.raises(ToolError, match=r"`echo \$\(\( \{\{…\}\} \+ 1 \)\)`") as caught:
        fill_script(("echo $(( ", " + 1 ))"), ("s3cret",))
    assert "s3cret" not in str(caught.value)


def test_a_script_without_values_is_left_as_it_is() -> None:
    assert fill_script(("eval 'x",), ()).text == "eval 'x"


@pytest.mark.parametrize("opening", ["$((", "((", "$(", '"$(', "`", "${", "(", "'", "x=("])
def test_what_is_nested_without_end_is_refused_at_once(opening: str) -> None:
    with pytest.raises(ToolError):
        fill_script((opening * 301, ""), ("x",))


@given(st.lists(syntax, min_size=2, max_size=4))
def test_any_script_is_filled_or_refused(written: list[str]) -> None:
    try:
        script = fill_script(tuple(written), ("1",) * (len(written) - 1))
    except ToolError:
        return
    assert all(f"${{{name}}}" in script.text for name in script.variables)


@settings(max_examples=60)
@given(st.lists(syntax, min_size=2, max_size=3), st.sampled_from(INJECTIONS))
def test_no_value_runs_anything_in_any_script(folder: Path, written: list[str], value: str) -> None:
    if "made" in "".join(written) or ">" in "".join(written):
        return
    try:
        script = fill_script(tuple(written), (value,) * (len(written) - 1))
    except ToolError:
        return
    env = {"PATH": os.environ["PATH"], **script.variables}
    subprocess.run(["/bin/bash", "-c", script.text], env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True)
    assert not list(folder.iterdir())
