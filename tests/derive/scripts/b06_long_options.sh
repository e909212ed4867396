#!/bin/sh
# Build a shed.

usage() {
  cat <<'END'
Usage: build.sh [--wood KIND] [--doors N] [--paint]
  --wood KIND   the kind of wood
  --doors N     how many doors
  --paint       paint it, too
END
}

wood=oak
doors=1
while [ "$#" -gt 0 ]; do
  case "$1" in
    --wood) wood="$2"; shift 2 ;;
    --doors) doors="$2"; shift 2 ;;
    --paint) paint=1; shift ;;
    --help) usage; exit 0 ;;
    *) usage >&2; exit 1 ;;
  esac
done
echo "$wood $doors ${paint:-0}"
