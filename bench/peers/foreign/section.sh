#!/usr/bin/env bash
# The command under `leasehold run`: holds the lock for 10 ms, and prints the line that redsync.go
# describes. $1: the section file; $2: when the run was started.
entered=$EPOCHREALTIME
outcome=got
set -o noclobber
{ : >"$1"; } 2>/dev/null || outcome=overlap
sleep 0.01
[[ $outcome != got ]] || rm "$1"
echo "${2/./}" $((${entered/./} - ${2/./})) "$outcome"
