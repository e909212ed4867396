"""What a script leaves behind: data, text with what was cut said, and errors of the
parameters that its parser complains of.
"""

from __future__ import annotations

import pytest

from skillruntime.derive import CommandLine
from skillruntime.derive.command_line import Parameter
from skillruntime.derive.script_output import read_output, usage_errors

LINE = CommandLine(parameters=(Parameter("path"), Parameter("maximum", "--max-count")))


@pytest.mark.parametrize(
    ("stdout", "data"),
    [
        ('{"a": 1}\n', {"a": 1}),
        ("[1, 2]", [1, 2]),
        ('{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
        ("done\n", {"stdout": "done"}),
        ("42", {"stdout": "42"}),
        ("{not json}", {"stdout": "{not json}"}),
        ('{"a": NaN}', {"stdout": '{"a": NaN}'}),
        ("", {"stdout": ""}),
    ],
)
def test_json_is_data_and_other_text_is_stdout(stdout: str, data: object) -> None:
    """Only an object, a list or lines of objects are data: a bare number may be a page
    number in a sentence.
    """
    assert read_output(stdout) == data


COMPLAINTS = [
    (
        "error: argument --max-count: invalid int value: 'x'",
        "INVALID_INPUT",
        "/maximum",
    ),
    (
        "error: argument -n/--max-count: expected one argument",
        "INVALID_INPUT",
        "/maximum",
    ),
    (
        "error: argument --mode: invalid choice: 'x' (choose from 'a', 'b')",
        "INVALID_INPUT",
        "/mode",
    ),
    (
        "error: the following arguments are required: path",
        "MISSING_REQUIRED_PARAM",
        "/path",
    ),
    (
        "Error: Invalid value for '--max-count' / '-n': 'x' is not a valid integer.",
        "INVALID_INPUT",
        "/maximum",
    ),
    (
        "Error: Invalid value for 'PATH': File 'x' does not exist.",
        "INVALID_INPUT",
        "/path",
    ),
    ("Error: Missing option '--max-count'.", "MISSING_REQUIRED_PARAM", "/maximum"),
]


@pytest.mark.parametrize(("said", "code", "path"), COMPLAINTS)
def test_a_usage_error_names_the_parameter(said: str, code: str, path: str) -> None:
    """Exit code 2 with the parser's own complaint is for the caller to correct."""
    error = usage_errors(2, f"usage: tool.py [-h]\ntool.py: {said}\n", LINE)[0]

    assert (error.code.value, error.recoverable) == (code, True)
    assert error.details is not None
    assert error.details["path"] == path


def test_several_missing_arguments_are_an_error_each() -> None:
    """One error per offending parameter."""
    errors = usage_errors(
        2, "t.py: error: the following arguments are required: path, --max-count", LINE
    )

    assert [error.message for error in errors] == [
        "path: it is required",
        "maximum: it is required",
    ]


@pytest.mark.parametrize(
    ("exit_code", "stderr"),
    [(1, "Traceback\nValueError: no"), (2, "cannot open"), (-9, "")],
)
def test_any_other_failure_is_not_a_usage_error(exit_code: int, stderr: str) -> None:
    """What is not a parser's complaint is the script's own failure."""
    assert usage_errors(exit_code, stderr) == ()
