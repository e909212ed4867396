#!/bin/sh
case "$1" in
  add) echo "add $2" ;;
  list) echo "list" ;;
  *) exit 1 ;;
esac
