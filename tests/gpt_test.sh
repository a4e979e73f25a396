#!/bin/sh
# examples/gpt.c has the same losses on every mesh, to rounding: one device, both axes, sizes that axes do not divide.
#   AXLE_BUILD=build sh tests/gpt_test.sh
set -u

: "${AXLE_BUILD:?the build folder}"
failed=0
losses() { "$AXLE_BUILD/examples/gpt" --steps 21 --mesh "$1" | awk '/^step/ { print $4 }' | tr '\n' ' '; }

alone=$(losses data=1)
for mesh in data=2,model=4 data=8 data=3 model=3,data=2; do
  echo "$alone $(losses $mesh)" | awk '
    { for (i = 1; i <= 3; i++) if ($i == "" || $(i + 3) == "" || ($i - $(i + 3)) ^ 2 > 0.0002 ^ 2) exit 1 }
    END { if (!($1 > 4 && $3 < 3)) exit 1 }' || {
    echo "gpt: on $mesh the losses are $(losses $mesh), on one device $alone"
    failed=1
  }
done
exit $failed
