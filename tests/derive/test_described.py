"""Descriptions of what no parser declares: `skillruntime/derive/described.py`."""

from __future__ import annotations

import pytest

from skillruntime.derive import derive

ARGUMENTS_SECTION = '''
"""
Convert a report.

Usage:
    python a.py <input_file> <output_file>

Arguments:
    input_file: Path to the report
    - `output_file`: Where to write the page
"""
import sys
if len(sys.argv) < 3:
    print(__doc__)
    sys.exit(1)
src = sys.argv[1]
dst = sys.argv[2]
print(src, dst)
'''
COMMENTS = """
import sys
# Path of the workbook
path = sys.argv[1]
timeout = sys.argv[2] if len(sys.argv) > 2 else 30  # seconds to wait
print(path, timeout)
"""
NUMBERED = """#!/bin/bash
# Deploy a service.
# $1 - environment to deploy to
# $2 - image tag
ENVIRONMENT="${1:?environment required}"
TAG="${2:-latest}"
echo "$ENVIRONMENT $TAG"
"""
ARMS = """#!/bin/bash
while getopts "v:i" opt; do
  case $opt in
    v) VERSION="$OPTARG" ;; # the version to install
    i) INSTALL=yes ;; # install it too
  esac
done
echo "$VERSION $INSTALL"
"""
USAGE_OF_ECHOS = """#!/bin/sh
if [ -z "$1" ]; then
  echo "Usage: $0 <host> [port]"
  echo "  host   the machine to ask"
  echo "  port   its port"
  exit 1
fi
HOST="$1"
PORT="${2:-80}"
echo "$HOST $PORT"
"""


@pytest.mark.parametrize(
    ("file", "source", "expected"),
    [
        ("a.py", ARGUMENTS_SECTION, {"input_file": "Path to the report", "output_file": "Where to write the page"}),
        ("b.py", COMMENTS, {"timeout": "seconds to wait"}),
        ("c.sh", NUMBERED, {"environment": "environment to deploy to", "tag": "image tag"}),
        ("d.sh", ARMS, {"version": "the version to install", "install": "install it too"}),
        ("e.sh", USAGE_OF_ECHOS, {"host": "the machine to ask", "port": "its port"}),
    ],
)
def test_arguments_are_described_by_the_texts_of_the_script(file: str, source: str, expected: dict[str, str]) -> None:
    """Usage texts, comments beside or above the assignment, numbered comments, and comments behind a case's arm."""
    derivation = derive(source, path=f"scripts/{file}")

    assert derivation is not None
    properties = derivation.document["input"]["properties"]
    assert {name: properties[name].get("description") for name in expected} == expected


def test_a_script_without_a_comment_is_described_by_its_usage_line() -> None:
    """A model chooses a tool by its description."""
    source = "import sys\nif len(sys.argv) < 2:\n    sys.exit('Usage: shrink.py <picture>')\nprint(sys.argv[1])\n"

    derivation = derive(source, path="scripts/shrink.py")

    assert derivation is not None
    assert derivation.document["description"] == "Usage: shrink.py <picture>"


def test_a_call_in_a_comment_of_the_script_is_an_example() -> None:
    """It also describes an argument that nothing else describes."""
    source = "#!/bin/sh\n# Greet.\n# Example: ./greet.sh Ada\nNAME=${1:?}\necho $NAME\n"

    derivation = derive(source, path="scripts/greet.sh")

    assert derivation is not None
    assert derivation.document["input"]["examples"] == [{"name": "Ada"}]
    assert derivation.document["input"]["properties"]["name"]["description"] == "For example Ada"
