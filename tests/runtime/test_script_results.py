"""What a script printed reaches the caller and the model, whatever it ended with:
`skillruntime/runtime/scripts/result.py`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillruntime import TokenLimits, discover
from skillruntime.adapters.tool_formats import SkillTools, to_mcp_result
from skillruntime.adapters.tools.conversation_tools import to_text
from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import ErrorCode, SkillError
from skillruntime.runtime.runtime import SkillRuntime
from tests import needs

pytestmark = pytest.mark.processes

WriteSkill = Callable[..., SkillCatalog]
LINT = """
import sys
print("a.py:3: unused import")
print("b.py:9: undefined name")
print("2 files checked", file=sys.stderr)
sys.exit(1)
"""


@pytest.fixture(params=["trusted", "untrusted"])
def trusted(request: pytest.FixtureRequest) -> bool:
    """Whether the skill is trusted; an untrusted one is approved and runs in a
    sandbox.
    """
    if request.param == "untrusted":
        request.getfixturevalue("some_sandbox")
    return bool(request.param == "trusted")


def call(
    catalog: SkillCatalog, name: str = "sample", arguments: Any = None, **options: Any
) -> SkillResponse:
    runtime = SkillRuntime(catalog, approve=lambda _: True)
    return runtime.call_sync(name, arguments or {}, **options)


def failure(response: SkillResponse) -> SkillError:
    """The one error of a failed call; the envelope holds 31.4."""
    assert response.to_dict()["status"] == "failed"
    (error,) = response.errors
    assert error.suggested_action
    return error


@pytest.fixture
def write_tool(tmp_path: Path) -> Callable[..., SkillCatalog]:
    """A function that writes a skill whose script has no contract of its own."""

    def write(source: str, *, trusted: bool = True) -> SkillCatalog:
        directory = tmp_path / "skills" / "sample"
        (directory / "scripts").mkdir(parents=True, exist_ok=True)
        (directory / "SKILL.md").write_text(
            "---\nname: sample\ndescription: A linter.\n---\nRun scripts/lint.py.\n"
        )
        declared = (
            "import argparse\n"
            "parser = argparse.ArgumentParser()\n"
            "parser.add_argument('--limit', type=int, default=3)\n"
            "arguments = parser.parse_args()\n"
        )
        (directory / "scripts" / "lint.py").write_text(declared + source)
        return discover(tmp_path / "skills", trusted=trusted)

    return write


def test_what_a_linter_found_is_the_data_of_its_failure(
    write_tool: WriteSkill, trusted: bool
) -> None:
    """A derived tool's other exit code than 0 is ``failed`` with the output, and may be
    a finding.
    """
    response = call(write_tool(LINT, trusted=trusted), "sample/lint")

    error = failure(response)
    assert error.code is ErrorCode.TOOL_EXECUTION_FAILED
    assert error.message == (
        "The script failed with exit code 1 (its output is in data; some scripts "
        "report findings so): 2 files checked"
    )
    assert response.data == {"stdout": "a.py:3: unused import\nb.py:9: undefined name"}
    assert response.metadata is not None
    assert response.metadata["exit_code"] == 1
    assert response.metadata["stderr"] == "2 files checked"


@pytest.mark.skipif(sys.platform == "win32", reason=needs.UNIX)
def test_the_directories_of_the_system_are_not_pythons(
    write_tool: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system's Python has the prefix ``/usr``, where most other programs are too."""
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    library = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}"
    source = f"sys.exit('no /usr/bin/gs, but /usr/{library}/json')"

    response = call(write_tool(f"import sys\n{source}"), "sample/lint")

    assert failure(response).message.endswith(
        f"no /usr/bin/gs, but python/{library}/json"
    )


def test_the_output_of_a_failing_contract_is_its_data(
    write_skill: WriteSkill, trusted: bool
) -> None:
    """One JSON value, which no output schema is asked about."""
    source = "import sys; print('{\"rows\": 3}'); sys.exit(3)"
    schema = {"type": "object", "required": ["never"]}

    response = call(write_skill(source, output=schema, trusted=trusted))

    error = failure(response)
    assert error.message == (
        "The script failed with exit code 3 (its output is in data)"
    )
    assert error.suggested_action == "Read the output in data"
    assert (response.data, response.metadata["exit_code"]) == ({"rows": 3}, 3)


def test_text_of_a_failing_contract_is_its_data(write_skill: WriteSkill) -> None:
    """What is not one JSON value is the text."""
    response = call(write_skill("print('no such table'); raise SystemExit(2)"))

    failure(response)
    assert response.data == "no such table"


def test_a_silent_failure_does_not_ask_to_repeat_a_message(
    write_skill: WriteSkill,
) -> None:
    """There is no message to tell the user."""
    response = call(write_skill("raise SystemExit(7)"))

    error = failure(response)
    assert error.message == "The script failed with exit code 7 and said nothing"
    assert error.suggested_action == (
        "Tell the user that the skill failed and did not say why"
    )
    assert response.data is None


@pytest.mark.parametrize("printed", ['{"found": 2}', '{"found": 2}\n'])
def test_a_contract_says_which_codes_are_results(
    write_skill: WriteSkill, trusted: bool, printed: str
) -> None:
    """``run.exit_codes``: success, with the meaning in the answer; the output schema is
    asked.
    """
    run = {"script": "scripts/run.py", "exit_codes": {"1": "problems were found"}}
    output = {"type": "object", "properties": {"found": {"type": "integer"}}}
    source = f"import sys; sys.stdout.write({printed!r}); sys.exit(1)"

    response = call(write_skill(source, run=run, output=output, trusted=trusted))
    misfit = call(
        write_skill(
            'print(\'{"found": "x"}\'); raise SystemExit(1)',
            run=run,
            output=output,
            trusted=trusted,
        )
    )
    other = call(
        write_skill("raise SystemExit(2)", run=run, output=output, trusted=trusted)
    )

    assert (response.status, response.data) == ("success", {"found": 2})
    assert response.metadata is not None
    assert response.metadata["exit_code"] == 1
    assert response.metadata["exit_meaning"] == "problems were found"
    assert "problems were found" in to_text(response)
    assert failure(misfit).code is ErrorCode.INVALID_OUTPUT
    assert misfit.data == {"found": "x"}
    assert failure(other).code is ErrorCode.TOOL_EXECUTION_FAILED


def test_a_model_reads_stderr_where_it_is_needed(write_tool: WriteSkill) -> None:
    """Where the call failed, or stdout is empty; the host has it in any case."""
    end = "print('to stderr', file=sys.stderr)"
    failed = call(
        write_tool(f"import sys; print(1); {end}; sys.exit(1)"), "sample/lint"
    )
    empty = call(write_tool(f"import sys; {end}"), "sample/lint")
    full = call(write_tool(f"import sys; print(1); {end}"), "sample/lint")

    for response in (failed, empty, full):
        assert response.metadata is not None
        assert response.metadata["stderr"] == "to stderr"
    assert '"stderr":"to stderr"' in to_text(failed)
    assert '"stderr":"to stderr"' in to_text(empty)
    assert "to stderr" not in to_text(full)
    assert to_mcp_result(failed)["isError"] is True


def test_the_model_reads_the_data_before_the_error(write_tool: WriteSkill) -> None:
    """What was found comes first, then how it ended."""
    text = to_text(call(write_tool(LINT), "sample/lint"))

    assert text.index("unused import") < text.index("failed with exit code 1")


def test_a_usage_error_of_a_derived_tool_stays_one(write_tool: WriteSkill) -> None:
    """The script's own parser refused the argument, which the model can change."""
    source = "print('reading'); parser.error('argument --limit: must be even')"

    response = call(write_tool(source), "sample/lint", {"limit": 3})

    error = failure(response)
    assert (error.code, error.message) == (
        ErrorCode.INVALID_INPUT,
        "limit: must be even",
    )
    assert response.data == {"stdout": "reading"}


def test_findings_named_errors_are_not_a_report_of_a_derived_tool(
    write_tool: WriteSkill,
) -> None:
    """A checker's list of errors is its output, unless each has a code and a message as
    31.2 says.
    """
    found = {"status": "failed", "errors": [{"file": "a.xml", "line": 3}]}
    reported = {"status": "failed", "errors": [{"code": "GONE", "message": "Gone"}]}
    end = "raise SystemExit(1)"

    checked = call(write_tool(f"print({json.dumps(found)!r}); {end}"), "sample/lint")
    report = call(write_tool(f"print({json.dumps(reported)!r}); {end}"), "sample/lint")

    assert (checked.data, failure(checked).code) == (
        found,
        ErrorCode.TOOL_EXECUTION_FAILED,
    )
    assert (report.data, failure(report).message) == (None, "Gone")


def test_secrets_host_paths_and_hidden_characters_are_not_in_failed_data(
    write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data and stderr of a failure are masked and cleaned, also where a hidden
    character cuts the secret in two.
    """
    monkeypatch.setenv("THE_KEY", "sk-12345")
    source = (
        "import os, sys\n"
        "key = os.environ['THE_KEY']\n"
        "words = key, key[:4] + '\\u200b' + key[4:], '\\x1b[31mred', __file__\n"
        "print(*words)\n"
        "print(*words, file=sys.stderr)\n"
        "sys.exit(1)\n"
    )

    response = call(write_skill(source, requires={"environment": ["THE_KEY"]}))

    failure(response)
    assert response.data == "*** *** red sample/scripts/run.py"
    assert response.metadata is not None
    assert response.metadata["stderr"] == "*** *** red sample/scripts/run.py"


def test_the_last_2000_characters_of_stderr_are_kept(write_skill: WriteSkill) -> None:
    """The end says how it came out."""
    source = "import sys; sys.stderr.write('a' * 50 + 'b' * 2000); sys.exit(1)"

    response = call(write_skill(source))

    assert response.metadata is not None
    assert response.metadata["stderr"] == "b" * 2000


@pytest.mark.skipif(sys.platform == "win32", reason=needs.UNIX)
def test_a_script_that_was_ended_shows_what_it_printed(
    write_skill: WriteSkill, trusted: bool
) -> None:
    """By a signal, at its deadline, or because it printed too much."""
    flush = "import os, signal, time; print('page 1', flush=True); "
    kill = "os.kill(os.getpid(), signal.SIGKILL)"

    killed = call(write_skill(flush + kill, trusted=trusted))
    late = call(write_skill(flush + "time.sleep(600)", trusted=trusted), timeout=5)
    flooding = "while True: print('page')"
    flooded = call(write_skill(flooding, trusted=trusted), timeout=300)

    assert (killed.data, killed.metadata["exit_code"]) == ("page 1", -9)
    assert failure(killed).message == (
        "The script was ended by SIGKILL (its output is in data)"
    )
    assert (late.data, failure(late).code) == ("page 1", ErrorCode.TOOL_TIMEOUT)
    assert failure(late).message.endswith(
        "; data is the part that it had printed by then"
    )
    assert (failure(late).details or {})["partial"] is True
    assert flooded.data.startswith("page\npage\n")
    assert "more than" in failure(flooded).message


def test_the_error_of_node_is_quoted_and_not_its_version(
    write_skill: WriteSkill,
) -> None:
    """Node ends its report with a line that says nothing of the fault."""
    report = (
        "run.js:1\n\nError: Cannot find module 'vega'\nRequire stack:\n- run.js\n"
        "    at Module._load (node:internal/modules/cjs/loader:1140:15)\n\n"
        "Node.js v20.20.2\n"
    )

    response = call(write_skill(f"import sys; sys.exit({report!r})"))

    assert failure(response).message == (
        "The script failed with exit code 1: Error: Cannot find module 'vega'"
    )


def test_the_exit_code_is_the_scripts_in_every_sandbox(
    write_skill: WriteSkill, trusted: bool
) -> None:
    """255 is a code of many programs, and not a signal."""
    response = call(write_skill("raise SystemExit(255)", trusted=trusted))

    assert response.metadata is not None
    assert response.metadata["exit_code"] == 255


@pytest.mark.parametrize("code", [0, 1])
def test_a_byte_order_mark_is_accepted(
    write_skill: WriteSkill, write_tool: WriteSkill, code: int
) -> None:
    """Windows programs write it before JSON and before text."""
    write = "import sys; sys.stdout.buffer.write(b'\\xef\\xbb\\xbf{\"a\": 1}')"

    derived = call(write_tool(f"{write}; sys.exit({code})"), "sample/lint")
    contract = call(write_skill(f"{write}; sys.exit({code})"))

    assert (contract.data, derived.data) == ({"a": 1}, {"a": 1})


def test_output_that_is_not_utf8_is_named_and_shown(write_skill: WriteSkill) -> None:
    """Which byte, and which encodings would read it."""
    source = 'import sys; sys.stdout.buffer.write(b\'{"a": "caf\\xe9"}\')'

    response = call(write_skill(source))

    error = failure(response)
    assert error.code is ErrorCode.INVALID_OUTPUT
    assert error.message == (
        "The script printed text that is not UTF-8: byte 0xe9 at offset 10 is not "
        "UTF-8; cp1252 or latin-1 would read it"
    )
    assert response.data == {"a": "caf\ufffd"}
    assert response.metadata is not None
    assert "warnings" not in response.metadata


def test_nan_in_json_is_named_and_shown(write_skill: WriteSkill) -> None:
    """JSON has no such number; it is not "something other than JSON"."""
    response = call(write_skill("print('{\"mean\": NaN}')"))

    assert failure(response).message == (
        "The script printed NaN, which JSON does not have"
    )
    assert response.data == '{"mean": NaN}'


@pytest.mark.parametrize(
    ("source", "stdout", "warning"),
    [
        (
            "import sys; sys.stdout.buffer.write(b'caf\\xe9')",
            "caf\ufffd",
            "The output is not UTF-8: byte 0xe9 at offset 3 is not UTF-8; cp1252 or "
            "latin-1 would read it",
        ),
        (
            "print('{\"mean\": NaN}')",
            '{"mean": NaN}',
            "The output is given as text: it has NaN, which JSON does not have",
        ),
    ],
)
def test_text_that_is_not_what_it_was_meant_to_be_has_a_warning(
    write_tool: WriteSkill, source: str, stdout: str, warning: str
) -> None:
    """The output of a derived tool may be any text, so it is still a result."""
    response = call(write_tool(source), "sample/lint")

    assert (response.status, response.data) == ("success", {"stdout": stdout})
    assert response.metadata is not None
    assert response.metadata["warnings"] == [warning]


def test_the_limits_of_results_hold_for_the_data_of_a_failure(
    write_tool: WriteSkill,
) -> None:
    """A page of the data, then the errors; the rest is read on."""
    source = "print('\\n'.join(f'line {n} is wrong' for n in range(900)))\nexit(1)"
    runtime = SkillRuntime(write_tool(source))
    limits = TokenLimits(result_page_tokens=200)

    with runtime.session(limits=limits) as session:
        response = session.call_sync("sample/lint", {})
        text = to_text(response)
        assert response.metadata is not None
        rest = session.read_on(response.metadata["read_on"])

    assert response.data["stdout"].endswith("line 899 is wrong")
    assert text.startswith('{"stdout":"line 0 is wrong')
    assert "to read on" in text
    assert text.index("to read on") < text.index("failed with exit code 1")
    assert "is wrong" in rest


def test_without_tokens_for_a_result_only_the_errors_of_a_failure_are_shown(
    write_tool: WriteSkill,
) -> None:
    """Errors are shown whatever the limits are; the data is not."""
    runtime = SkillRuntime(write_tool("print('word ' * 900)\nexit(1)"))

    with runtime.session(limits=TokenLimits(total_tokens=80)) as session:
        response = session.call_sync("sample/lint", {})

    assert response.data is None
    assert [error.code.value for error in response.errors] == [
        "TOOL_EXECUTION_FAILED",
        "TOKEN_LIMIT_EXCEEDED",
    ]


def test_a_hand_written_loop_gets_the_output_too(write_tool: WriteSkill) -> None:
    """`SkillTools`, in the forms of the providers."""
    tools = SkillTools(SkillRuntime(write_tool(LINT)))

    response = tools.call_sync("sample_lint", {})

    assert "unused import" in to_text(response)


@pytest.mark.parametrize("times", [2, 3, 2_000])
def test_several_values_are_none_of_them_the_result(
    write_skill: WriteSkill, times: int
) -> None:
    """However many there are."""
    response = call(write_skill(f"print('{{\"row\": 1}}\\n' * {times})"))

    assert failure(response).code is ErrorCode.INVALID_OUTPUT
    assert "something other than one JSON value" in failure(response).message
