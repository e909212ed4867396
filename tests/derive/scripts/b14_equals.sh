#!/bin/bash
for word in "$@"; do
  case "$word" in
    --name=*) name="${word#*=}" ;;
    --dry) dry=1 ;;
    *) exit 1 ;;
  esac
done
echo "$name $dry"
