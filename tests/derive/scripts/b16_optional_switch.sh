#!/bin/bash
if [ "$1" = "--fast" ]; then
  fast=1
  shift
fi
echo "$1 $fast"
