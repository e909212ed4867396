#!/bin/bash
# Number the lines of a file.

start=1
while getopts "s:qh" option; do
  case "$option" in
    s) start="$OPTARG" ;;
    q) quiet=1 ;;
    h) echo "help"; exit 0 ;;
    *) exit 2 ;;
  esac
done
echo "$start ${quiet:-0}"
