#!/usr/bin/env bash
# Pack a directory.
# Usage: b01_getopts.sh [-v] [-o output] directory
set -euo pipefail

usage() {
  cat <<EOF
  -o FILE    Where to write
  -v         Say more
EOF
}

output=out.tar
verbose=0
while getopts "o:vh" opt; do
  case "$opt" in
    o) output="$OPTARG" ;;
    v) verbose=1 ;;
    h) usage; exit 0 ;;
    *) usage; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
directory="${1:?directory}"
echo "$output|$verbose|$directory"
