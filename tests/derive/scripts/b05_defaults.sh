#!/usr/bin/env bash
# Copy a picture.
# Usage: copy.sh <source> [target]

set -euo pipefail
source="${1:?Usage: copy.sh <source> [target]}"
target="${2:-copy.png}"
cp -- "$source" "$target"
