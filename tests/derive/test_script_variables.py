"""Which variables a script reads, and without which it cannot run."""

from __future__ import annotations

import pytest

from skillruntime.derive.script_variables import ScriptVariables, script_variables

T = "os.environ['T']"
PYTHON: list[tuple[str, bool]] = [
    (T, True),
    (f"key = {T}.strip()", True),
    (f"def main():\n    use({T})\nif __name__ == '__main__':\n    main()", True),
    (f"def main():\n    return {T}\nsys.exit(main())", True),
    (f"async def main():\n    print({T})\nasyncio.run(main())", True),
    (f"class Config:\n    key = {T}", True),
    (f"with open('x') as file:\n    print({T})", True),
    (f"try:\n    print({T})\nexcept OSError:\n    pass", True),
    (f"args = parser.parse_args()\nif not args.x:\n    parser.error('x')\n{T}", True),
    (f"if len(sys.argv) < 2:\n    print('usage')\n    sys.exit(1)\n{T}", True),
    (f"for key in {T}.split():\n    print(key)", True),
    # What may not be reached, or has a value from elsewhere.
    (f"def upload():\n    use({T})", False),
    (f"if args.upload:\n    use({T})", False),
    (f"key = args.key or {T}", False),
    (f"key = args.key if args.key else {T}", False),
    (f"key = lambda: {T}", False),
    (f"keys = [{T} for each in args.keys]", False),
    (f"try:\n    print({T})\nexcept KeyError:\n    sys.exit('set T')", False),
    (f"try:\n    print({T})\nexcept Exception:\n    pass", False),
    (f"with suppress(KeyError):\n    print({T})", False),
    (f"if args.list:\n    show()\n    sys.exit(0)\n{T}", False),
    (f"def show():\n    sys.exit()\nif args.list:\n    show()\n{T}", False),
    (f"def main():\n    if args.dry:\n        return\n    use({T})\nmain()", False),
    (
        f"def main():\n    if x:\n        print('no')\n        return\n    {T}\nmain()",
        False,
    ),
    (f"for each in args.files:\n    print({T})", False),
    (f"os.environ['T'] = '1'\nprint({T})", False),
    (f"os.environ.setdefault('T', '1')\nprint({T})", False),
    (f"load_dotenv()\nprint({T})", False),
    (f"os.environ.update(settings)\nprint({T})", False),
    ("os.environ.get('T')", False),
    ("os.getenv('T', 'x')", False),
    ("if 'T' in os.environ: print(1)", False),
]


@pytest.mark.parametrize(("source", "is_needed"), PYTHON)
def test_a_python_script_needs_what_each_run_looks_up(
    source: str, is_needed: bool
) -> None:
    """What a condition, a handler or a default may spare it is only read."""
    found = script_variables(f"import os, sys\n{source}\n".encode(), "scripts/a.py")

    if is_needed:
        assert found == ScriptVariables(needed=("T",))
    else:
        assert found == ScriptVariables(read=("T",))


SHELL: list[tuple[str, bool]] = [
    (': "${T:?}"', True),
    ('echo "${T?set it}"', True),
    ('main() { echo ${T:?}; }\nmain "$@"', True),
    ('[ -z "$1" ] && { echo "Usage: a"; exit 1; }\n: ${T:?}', True),
    ("usage() { echo x; exit 0; }\ncase $1 in -h) usage;; esac\n: ${T:?}", True),
    ('if [ "$1" = x ]; then exit 2; fi\n: ${T:?}', True),
    ('cd "${T:?}" || exit 1', True),
    ('if [ -n "$1" ]; then echo "${T:?}"; fi', False),
    ('if [ "$1" = list ]; then ls; exit 0; fi\n: ${T:?}', False),
    ("upload() { echo ${T:?}; }", False),
    ('echo "${T:?}" | cat', False),
    ('[ -n "$1" ] && echo "${T:?}"', False),
    ('echo "${T:-x}"', False),
    ("echo $T", False),
]


@pytest.mark.parametrize(("source", "is_needed"), SHELL)
def test_a_shell_script_needs_what_each_run_demands(
    source: str, is_needed: bool
) -> None:
    """By ``${NAME:?}``, which ends it (POSIX, 2.6.2)."""
    found = script_variables(f"#!/bin/bash\n{source}\n".encode(), "scripts/a")

    if is_needed:
        assert found == ScriptVariables(needed=("T",))
    else:
        assert found == ScriptVariables(read=("T",))


def test_what_the_script_sets_itself_is_not_the_hosts() -> None:
    """Nor are words that no variable has, and names in small letters."""
    source = (
        b'OUT=$1\nfor FILE in *; do echo "$FILE $OUT $small"; done\n'
        b'read -r ANSWER\necho "$ANSWER" \'${LITERAL:?}\' "${OUT:?}"\n'
    )

    assert "OUT" not in script_variables(source, "a.sh").read
    assert script_variables(source, "a.sh").needed == ()


def test_other_languages_are_only_read() -> None:
    """And what is too large, nested too deeply or not a script is not."""
    node = b"const key = process.env.API_KEY || process.env['OTHER'];"

    assert script_variables(node, "a.mjs") == ScriptVariables(read=("API_KEY", "OTHER"))
    assert script_variables(node, "a.md") == ScriptVariables()
    deep = b"import os\nos.environ['T']" + b"(" * 5000
    assert script_variables(deep, "a.py") == ScriptVariables()
    assert script_variables(b"x = os.environ['T']\n" * 30_000, "a.py") == (
        ScriptVariables()
    )
