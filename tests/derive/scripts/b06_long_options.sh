#!/bin/sh
# Build a shed.

usage() {
  cat <<'END'
Usage: build.sh [--wood KIND] [--gates N] [--paint]
  --wood KIND   the kind of wood
  --gates N     how many gates
  --paint       paint it, too
END
}

wood=oak
gates=1
while [ "$#" -gt 0 ]; do
  case "$1" in
    --wood) wood="$2"; shift 2 ;;
    --gates) gates="$2"; shift 2 ;;
    --paint) paint=1; shift ;;
    --help) usage; exit 0 ;;
    *) usage >&2; exit 1 ;;
  esac
done
echo "$wood $gates ${paint:-0}"
