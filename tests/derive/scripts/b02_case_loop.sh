#!/bin/bash
# Deploy something.

target="staging"
dry_run=false
while [[ $# -gt 0 ]]; do
  case "$1" in
    -t|--target)
      target="$2"
      shift 2
      ;;
    --dry-run) dry_run=true; shift ;;
    -h|--help) echo help; exit 0 ;;
    *) echo "unknown: $1" >&2; exit 2 ;;
  esac
done
echo "$target|$dry_run"
