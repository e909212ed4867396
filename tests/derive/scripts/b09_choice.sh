#!/bin/sh
# Open or close the gate.
case "$1" in
  open) echo "creak" ;;
  close|shut) echo "bang" ;;
  *)
    echo "Usage: $0 {open|close}" >&2
    exit 1
    ;;
esac
