#!/bin/bash
loud=0
while getopts "l" option; do
  case "$option" in
    l) loud=1 ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
echo "$loud $1"
