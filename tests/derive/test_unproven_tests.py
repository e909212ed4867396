"""Tests of what a word says that end a script: what is not understood is named, and the contract is not whole."""

from __future__ import annotations

import pytest

from skillruntime.derive import Derivation, derive

PYTHON = (
    "import re, sys\nfrom datetime import datetime\nif len(sys.argv) < 2: sys.exit('usage: a.py X')\nx = sys.argv[1]\n"
)
NODE = "const [, , x] = process.argv;\nif (!x) { console.error('usage: a.js X'); process.exit(1); }\n"


def derived(source: str, path: str) -> Derivation:
    found = derive(source, path=path)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "test",
    [
        "if not re.fullmatch('[A-Z]+', x): sys.exit('usage: a.py X')",
        "m = re.match('[A-Z]+', x)\nif m is None: sys.exit('usage: a.py X')",
        "base, dot, ending = x.rpartition('.')\nif ending not in ('png', 'jpg'): sys.exit('usage: a.py X.png')",
        "try: day = datetime.strptime(x, '%Y')\nexcept ValueError: sys.exit('usage: a.py YEAR')",
        "def is_name(text): return text.isalpha()\nif not is_name(x): sys.exit('usage: a.py NAME')",
    ],
)
def test_a_python_script_that_refuses_words_for_what_they_say_is_not_whole(test: str) -> None:
    """A pattern, an ending, a date: the contract cannot say them, so a call of it may be refused."""
    derivation = derived(f"{PYTHON}{test}\nprint(x)\n", "scripts/a.py")

    assert [each.reason.endswith("was not understood") for each in derivation.unread] == [True]
    assert len(derivation.document["input"]["required"]) == 1


@pytest.mark.parametrize(
    "rest",
    [
        "import os\nif not os.path.exists(x): sys.exit('no such file')",
        "if not fetch(x): sys.exit('the server says no')",
        "try: print(open(x).read())\nexcept OSError: sys.exit('cannot read it')",
        "if not x.strip(): sys.exit('usage: a.py X')",
    ],
)
def test_what_a_file_or_a_server_says_is_not_a_demand_on_a_word(rest: str) -> None:
    """Only the command line is: the contract stays whole."""
    assert derived(f"{PYTHON}{rest}\nprint(x)\n", "scripts/a.py").complete


@pytest.mark.parametrize(
    "test",
    [
        "if (!/^[a-z]+$/.test(x)) process.exit(1);",
        "const m = /^([a-z]+)$/.exec(x);\nif (!m) process.exit(1);",
        "if (isNaN(Date.parse(x))) process.exit(1);",
        "let u;\ntry { u = new URL(x); } catch { process.exit(1); }",
        "if (x.split(',').length !== 2) process.exit(1);",
    ],
)
def test_a_node_script_that_refuses_words_for_what_they_say_is_not_whole(test: str) -> None:
    """As in Python."""
    assert len(derived(f"{NODE}{test}\nconsole.log(x);\n", "scripts/a.js").unread) == 1


def test_a_number_that_must_be_an_integer_is_one() -> None:
    """``Number.isInteger(Number(x))``."""
    source = "const n = Number(process.argv[2]);\nif (!Number.isInteger(n)) process.exit(1);\nconsole.log(n);\n"
    derivation = derived(source, "scripts/a.js")

    assert derivation.complete
    assert derivation.document["input"]["properties"] == {"n": {"type": "integer"}}


def test_a_table_of_functions_in_a_node_script_gives_its_commands() -> None:
    """A function is called with more than it takes, which JavaScript allows."""
    source = (
        "const commands = { list: () => console.log(1), add(args) { if (!args[0]) process.exit(1); } };\n"
        "const [, , name, ...rest] = process.argv;\n"
        "if (!Object.hasOwn(commands, name)) { console.error('usage: a.js list|add'); process.exit(1); }\n"
        "commands[name](rest);\n"
    )
    branches = derived(source, "scripts/a.js").document["input"]["oneOf"]

    assert [each["properties"] for each in branches] == [
        {"name": {"const": "list"}},
        {"name": {"const": "add"}, "rest": {"type": "string"}},
    ]


@pytest.mark.parametrize(
    ("source", "path"),
    [
        (
            "import sys\nif len(sys.argv) != 3: sys.exit('usage: a.py FILE yes|no')\nfile = sys.argv[1]\n"
            "if sys.argv[2] not in ('yes', 'no'): sys.exit('usage: a.py FILE yes|no')\nprint(file, sys.argv[2])\n",
            "scripts/a.py",
        ),
        (
            'case "$2" in\n  yes|no) ;;\n  *) exit 1 ;;\nesac\n[ -n "$1" ] || exit 1\necho "$1" "$2"\n',
            "scripts/a.sh",
        ),
    ],
)
def test_a_choice_may_stand_behind_other_words(source: str, path: str) -> None:
    """``convert FILE yes|no``: the second word is one of the literals."""
    derivation = derived(source, path)

    first, second = derivation.document["input"]["properties"].values()
    assert derivation.complete
    assert (first, second["enum"]) == ({"type": "string"}, ["yes", "no"])


@pytest.mark.parametrize(
    "test",
    [
        'if ! date -d "$1" > /dev/null; then exit 1; fi',
        'x=$(date -d "$1" +%s) || exit 1',
        '[[ -d "$1" ]] || exit 1',
        'case "${1##*.}" in png|jpg) ;; *) exit 1 ;; esac',
        "if [ ${#1} -lt 8 ]; then exit 1; fi",
    ],
)
def test_a_shell_script_that_refuses_words_for_what_they_say_is_not_whole(test: str) -> None:
    """A date, a directory, an ending, a length."""
    derivation = derived(f': "${{1:?usage: a.sh X}}"\n{test}\necho "$1"\n', "scripts/a.sh")

    assert [each.reason.endswith("was not understood") for each in derivation.unread] == [True]


def test_a_word_that_only_the_environment_replaces_is_named() -> None:
    """``NAME="${1:-${DEPLOY_NAME:-}}"``: without either the script ends."""
    source = 'NAME="${1:-${DEPLOY_NAME:-}}"\n[ -n "$NAME" ] || { echo "usage: a.sh NAME"; exit 1; }\necho "$NAME"\n'
    derivation = derived(source, "scripts/a.sh")

    assert [each.argument for each in derivation.unread] == ["name"]
    assert "required" not in derivation.document["input"]


def test_a_choice_that_asks_for_more_is_named() -> None:
    """``level N`` beside ``on`` and ``off``."""
    source = (
        'case "$1" in\n  on|off) echo "$1" ;;\n  level) [ -n "$2" ] || exit 1; echo "$2" ;;\n  *) exit 1 ;;\nesac\n'
    )
    derivation = derived(source, "scripts/a.sh")

    assert not derivation.complete


def test_an_associative_array_of_functions_gives_the_commands() -> None:
    """Each with as many words as its function needs."""
    source = (
        'declare -A commands=([list]=show ["add"]=store)\nshow() { echo; }\nstore() { echo "${1:?title}"; }\n'
        '[ -n "${commands[$1]}" ] || { echo "usage: a.sh list|add"; exit 1; }\n'
        'name=$1; shift\n"${commands[$name]}" "$@"\n'
    )
    branches = derived(source, "scripts/a.sh").document["input"]["oneOf"]

    found = [(each["properties"]["command"]["const"], each["properties"]["args"].get("minItems")) for each in branches]
    assert found == [("list", None), ("add", 1)]


def test_an_associative_array_of_options_is_read() -> None:
    """What it holds for ``name`` is the value of ``--name``, which the script demands."""
    source = (
        "declare -A o\nwhile [ $# -gt 0 ]; do\n  case $1 in\n    --name) o[name]=$2; shift 2 ;;\n"
        "    --port) o[port]=$2; shift 2 ;;\n    *) exit 1 ;;\n  esac\ndone\n"
        '[[ -z ${o[name]} ]] && exit 1\necho "${o[name]}" "${o[port]}"\n'
    )
    derivation = derived(source, "scripts/a.sh")

    assert derivation.complete
    assert derivation.document["input"]["required"] == ["name"]
