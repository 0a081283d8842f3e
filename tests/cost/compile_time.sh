#!/usr/bin/env bash
# Every header of cost/, included alone, compiles in under 3 s of processor time at -O2:
#   bash compile_time.sh COMPILER INCLUDE
set -uo pipefail
compiler=$1 include=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
for header in "$include"/tenon/cost/*.hpp; do
  name=tenon/cost/${header##*/}
  echo "#include <$name>" > "$work/unit.cpp"
  best=
  # The best of three: a busy machine slows processors down, too.
  for _ in 1 2 3; do
    took=$({ TIMEFORMAT=%U; time "$compiler" -std=c++20 -O2 -I"$include" -c "$work/unit.cpp" -o "$work/unit.o"; } 2>&1) || {
      echo "FAILED: $name does not compile: $took" >&2
      failed=1
      took=0
      break
    }
    took=${took##*$'\n'}
    best=$(awk -v a="$took" -v b="${best:-1e9}" 'BEGIN { print a < b ? a : b }')
    awk -v t="$best" 'BEGIN { exit !(t < 3) }' && break
  done
  echo "$name ${best:-?} s"
  awk -v t="${best:-9}" 'BEGIN { exit !(t < 3) }' || {
    echo "FAILED: $name must compile in under 3 s, it takes ${best:-?} s" >&2
    failed=1
  }
done
exit $failed
