#!/bin/sh
# Under mpirun, messages are measured, and what process 0 prints is a description of the machine: speeds.sh AXLE
set -eu
axle=$1
here=$(mktemp)
trap 'rm -f "$here"' EXIT
"$axle" devices --messages >"$here"
[ -s "$here" ] || exit 0 # the other processes print nothing
grep -q '^message .*# measured: ' "$here"
grep -q '^transfer .*# measured: ' "$here"
grep -q '^# processes       bytes    one by one' "$here"
AXLE_MACHINE=$here "$axle" devices --machine | grep -q '^handshake .*# given: '
