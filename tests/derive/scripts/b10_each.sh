#!/bin/bash
[ $# -ge 1 ] || { echo "name a seed" >&2; exit 1; }
bed="$1"
shift
for seed in "$@"; do
  echo "$bed: $seed"
done
