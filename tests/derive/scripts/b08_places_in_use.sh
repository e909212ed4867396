#!/bin/bash
# Join two rivers.
if [ $# -ne 2 ]; then
  echo "Usage: $0 left right" >&2
  exit 1
fi
printf '%s meets %s\n' "$1" "$2"
