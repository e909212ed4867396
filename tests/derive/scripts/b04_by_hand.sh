#!/bin/bash
exec ls "$@"
