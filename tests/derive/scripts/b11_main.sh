#!/usr/bin/env bash
# Paint a wall.
log() { echo "[$1] $2"; }

main() {
  local wall="${1:-}"
  local colour="${2:-white}"
  if [ -z "$wall" ]; then
    echo "which wall?" >&2
    exit 2
  fi
  log "$colour" "$wall"
  awk 'BEGIN { print "done" } { print $1 }' /dev/null
}

main "$@"
