#!/bin/sh
# Resize an image.
if [ $# -lt 2 ]; then
  echo "too few" >&2
  exit 1
fi
INPUT="$1"
OUTPUT="$2"
WIDTH="${3:-800}"
echo "$INPUT|$OUTPUT|$WIDTH"
