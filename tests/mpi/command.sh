#!/bin/sh
# The command in several processes does what it does in one: files that each process reads and writes in part.
#   tests/mpi/command.sh LAUNCHER SHIM PROCESSES AXLE
set -eu

launcher=$1 shim=$2 processes=$3 axle=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
together() { sh tests/mpi/run.sh "$launcher" "$shim" "$processes" "$@"; }
fail() {
  echo "command.sh: $*" >&2
  exit 1
}

cat >"$work/counted.axle" <<'END'
{ lambda . let
    rows:f32[64,24000] = iota[dtype=f32 shape=(64, 24000) dimension=0]
    columns:f32[64,24000] = iota[dtype=f32 shape=(64, 24000) dimension=1]
    a:f32[64,24000] = sub columns rows
    b:s32[64,8] = iota[dtype=s32 shape=(64, 8) dimension=1]
  in (a, b) }
END
cat >"$work/twice.axle" <<'END'
{ lambda a:f32[64,24000] b:s32[64,8]. let
    c:f32[64,24000] = add a a
    d:s32[64,8] = neg b
    e:s32[] = reduce_sum[axes=(0, 1)] b
  in (c, d, e) }
END
"$axle" run "$work/counted.axle" --processes one --out "a=$work/a.npy" --out "b=$work/b.npy"

# Rows, which are long runs in the file, and columns, which are short ones; and a result that all processes have.
for sharding in 'a=x,_ b=_,x' 'a=_,x b=x,_'; do
  set -- run "$work/twice.axle" --mesh x=4 --in "a=$work/a.npy" --in "b=$work/b.npy"
  for spec in $sharding; do set -- "$@" --in-sharding "$spec"; done
  "$axle" "$@" --processes one --out "c=$work/c1.npy" --out "d=$work/d1.npy" --out "e=$work/e1.npy"
  together "$axle" "$@" --processes mpi --out "c=$work/c.npy" --out "d=$work/d.npy" --out "e=$work/e.npy"
  for result in c d e; do cmp "$work/$result.npy" "$work/${result}1.npy"; done
  AXLE_FILES=mpi together "$axle" "$@" --processes mpi --out "c=$work/c.npy" --out "d=$work/d.npy" # by MPI's own functions
  for result in c d; do cmp "$work/$result.npy" "$work/${result}1.npy"; done
done
rm "$work"/?1.npy "$work"/[cde].npy

# A failure is told, and nothing is left.
if together "$axle" "$@" --processes mpi --out "c=$work/no/c.npy" 2>"$work/said"; then
  fail "a file is written where no folder is"
fi
grep -q "process 0: .*/no/c.npy: cannot write: No such file or directory" "$work/said" || fail "$(cat "$work/said")"
rm "$work/said"

# All write by MPI, or none.
cat >"$work/otherwise" <<'END'
rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-$PMI_RANK}}
[ "$rank" -lt "$(($1 - 1))" ] || export AXLE_FILES=mpi
shift
exec "$@"
END
if together sh "$work/otherwise" "$processes" "$axle" "$@" --processes mpi --out "c=$work/c.npy" 2>"$work/said"; then
  fail "one process writes by MPI, and the others do not"
fi
grep -q "process $((processes - 1)): writes .*/c.npy by MPI$" "$work/said" || fail "$(cat "$work/said")"

# The last process does not see the files of the others.
mkdir "$work/own" "$work/shared"
cat >"$work/apart" <<'END'
rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-$PMI_RANK}}
cd "$1/shared"
[ "$rank" -lt "$(($2 - 1))" ] || cd "$1/own"
shift 2
exec "$@"
END
case $axle in /*) ;; *) axle=$PWD/$axle ;; esac
if together sh "$work/apart" "$work" "$processes" "$axle" "$@" --processes mpi --out c=c.npy 2>"$work/said"; then
  fail "a file is written that one process does not see"
fi
grep -q "process $((processes - 1)): c.npy: cannot write: .*: No such file or directory, which process 0 has made" "$work/said" ||
  fail "$(cat "$work/said")"
[ -z "$(ls "$work/own" "$work/shared" | grep npy)" ] || fail "left: $(ls "$work/own" "$work/shared")"

shift # the name of the command
# One timeline of all processes, and one table of them.
together "$axle" trace "$@" --processes mpi --timeline "$work/t.json" >"$work/said"
[ ! -s "$work/said" ] || fail "$(cat "$work/said")"
p=0
while [ "$p" -lt "$processes" ]; do
  grep -q "\"name\":\"process_name\",\"ph\":\"M\",\"pid\":$p,\"args\":{\"name\":\"process $p on " "$work/t.json" ||
    fail "no process $p in the timeline"
  p=$((p + 1))
done
[ "$(grep -c '"name":"device [0-3]"' "$work/t.json")" = 4 ] || fail "not all devices are in the timeline"
[ "$(tail -n 1 "$work/t.json")" = "]}" ] || fail "the timeline has no end"
together "$axle" devices --processes mpi --mesh x=4 >"$work/said"
grep -q "^processes  $processes$" "$work/said" || fail "$(cat "$work/said")"
[ "$(grep -c '^processor' "$work/said")" -le 1 ] || fail "more than one process prints the machine"
grep -q "^  $((processes - 1))  .*GiB  .*3  *" "$work/said" || fail "$(cat "$work/said")" # the last device is the last process's
together "$axle" bench "$@" --processes mpi --runs 3 >"$work/said"
[ "$(grep -c '^a run: ' "$work/said")" = 1 ] || fail "$(cat "$work/said")"
devices=$((4 / processes + (4 % processes > 0)))
grep -q "^$processes processes; what is listed is process 0's, with $devices of the devices$" "$work/said" ||
  fail "$(cat "$work/said")"

# Each line is printed once, by the process that it is of.
cat >"$work/prints.axle" <<'END'
{ axes x=4 ; lambda a:f32[1]{V:x}. let
    b:f32[1] = psum[axes=(x)] a
    = debug_print[axes=() format="the sum {}"] b
    = debug_print[axes=() format="a block {}"] a
    = debug_print[axes=(x) format="on each device {}"] b
    i:s32[]{V:x} = axis_index[axes=(x)]
    = ordered_debug_print[axes=() format="in order {}"] i
  in (b) }
END
"$axle" run "$work/prints.axle" --processes one --in 'a=[1, 2, 3, 4]:f32[4]' | sort >"$work/one"
together "$axle" run "$work/prints.axle" --processes mpi --in 'a=[1, 2, 3, 4]:f32[4]' | sort >"$work/many"
cmp "$work/one" "$work/many"
