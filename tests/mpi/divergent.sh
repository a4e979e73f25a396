#!/bin/sh
# Programs in which one process ends early (divergent.c): each ends, within a time that only a hang exceeds; the others say which
# process it was, or the launcher ends them. Prints how long it took from the end of the one until the last of the others was told.
#   tests/mpi/divergent.sh LAUNCHER SHIM PROCESSES PROGRAM FIRST COUNT
set -u

launcher=$1 shim=$2 processes=$3 program=$4 seed=$5 last=$(($5 + $6 - 1))
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 limit=120
# UCX and Open MPI print where a process was that got a signal, and sometimes never end doing so, since it may hold a lock of malloc.
export UCX_ERROR_SIGNALS=SIGXCPU OMPI_MCA_opal_signal=31

wrong() {
  echo "divergent.sh: seed $seed: $1"
  cat "$work/log" "$work/out"
  failed=$((failed + 1))
}

while [ "$seed" -le "$last" ]; do
  : > "$work/log"
  began=$(date +%s)
  timeout -k 5 $limit sh "$here/run.sh" "$launcher" "$shim" "$processes" --left "$program" end "$seed" "$work/log" > "$work/out" 2>&1
  status=$?
  told=$(grep -c '^told' "$work/log")
  if [ $(($(date +%s) - began)) -ge $limit ]; then # 137 may be the launcher's word for a process that was killed
    wrong "a hang"
  elif grep -q '^wrong' "$work/log"; then
    wrong "the message is not what it should be"
  elif [ "$told" -lt $((processes - 1)) ] && [ $status = 0 ]; then
    wrong "$told of $((processes - 1)) were told, and the launcher ended none"
  fi
  awk -v seed="$seed" -v all="$processes" '
    $1 == "does" { began = $3; for (i = 4; i <= NF; i++) how = how " " $i }
    $1 == "told" { told++; if ($3 > last) last = $3 }
    END { printf "%d%s: ", seed, how; if (told == all - 1) printf "told %.0f\n", (last - began) * 1e3; else print "ended" }
  ' "$work/log" >> "$work/all"
  seed=$((seed + 1))
done

sort -t: -k2 "$work/all" | sed -n 's/.*told //p' | sort -n > "$work/times"
count=$(wc -l < "$work/times")
echo "programs in which a process ends: $6; in $count all others were told, after $(sed -n "$(((count + 1) / 2))p" "$work/times") ms (median)" \
     "and $(tail -n 1 "$work/times") ms (most); in $(grep -c ': ended' "$work/all") the launcher ended them"
[ $failed = 0 ]
