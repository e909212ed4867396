#!/bin/bash
# Pack boxes.
boxes=()
tape=0
while [[ $# -gt 0 ]]; do
  case "$1" in
    --tape) tape=1; shift ;;
    --mark) marks+=("$2"); shift 2 ;;
    -*) echo "unknown: $1" >&2; exit 2 ;;
    *) boxes+=("$1"); shift ;;
  esac
done
echo "$tape|${boxes[*]}|${marks[*]}"
