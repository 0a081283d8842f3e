#!/usr/bin/env bash
# Breaks each rule of layering.sh once, in a copy of the headers: bash layering_catches.sh ROOT
set -euo pipefail
check=$PWD/layering.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# catches SENTENCE FILE TEXT...: FILE with the lines TEXT must make the check fail with SENTENCE.
catches() {
  local sentence=$1 file=$work/include/tenon/$2 said
  shift 2
  mkdir -p "$(dirname "$file")"
  printf '%s\n' '#pragma once' "$@" > "$file"
  if said=$(bash "$check" "$work"); then
    echo "not caught: $sentence"
    failed=1
  elif [[ $said != *"$sentence"* ]]; then
    printf 'expected: %s\nsaid: %s\n' "$sentence" "$said"
    failed=1
  fi
  rm "$file"
}

cp -r "$1/include" "$work/include"
mkdir "$work/cmake"
cp -r "$1/cmake/compiled" "$work/cmake/compiled"
echo '#pragma once' > "$work/include/tenon/everything.hpp"
bash "$check" "$work" > /dev/null || { echo "the headers themselves break the rules"; exit 1; }

catches 'core/ must not include quant/' core/probe.hpp '#include "../quant/half.hpp"'
catches 'io/ must not include model/' io/probe.hpp '#include "../model/concepts.hpp"'
catches 'quant/ must not include tensor/' quant/probe.hpp ' # include "../core/../tensor/view.hpp"'
catches 'is no header of the library' core/probe.hpp '#include "absent.hpp"'
catches 'core/ must not include the umbrella' core/probe.hpp '#include "../everything.hpp"'
catches 'relatively, not <tenon/core/error.hpp>' quant/probe.hpp '#include <tenon/core/error.hpp>'
catches '<Eigen/Dense> may be included only' tensor/probe.hpp '#include <Eigen/Dense>'
catches '<immintrin.h> may be included only' kernels/probe.hpp '#include <immintrin.h>'
catches 'core/ includes only the standard library' core/probe.hpp '#include <nlohmann/json.hpp>'
catches 'the macro MIN must have the prefix' core/probe.hpp '#define MIN(a, b) a'
catches 'macros may be defined, there are' core/probe.hpp "$(printf '#define TENON_M%d\n' {1..12})"
catches 'at most 400 lines, this one has 401' core/probe.hpp "$(yes '//' | head -n 400)"
catches 'the folder shapes/ has no line' shapes/probe.hpp ''
echo '// no guard' > "$work/include/tenon/core/probe.inl"
catches 'it must end by including core/probe.inl' core/probe.hpp ''
catches 'one file of cmake/compiled must include it, 0 do' core/probe.hpp '#include "probe.inl"'
catches 'core/probe.inl:1: `#pragma once` is missing' core/probe.hpp '#include "probe.inl"'
rm "$work/include/tenon/core/probe.inl"
catches 'not "util"' core/string_utils.hpp ''
catches 'not "v2"' io/reader_v2.hpp ''

mkdir -p "$work/include/tenon/core"
echo '// no guard' > "$work/include/tenon/core/probe.hpp"
if bash "$check" "$work" > /dev/null; then
  echo 'not caught: a missing #pragma once'
  failed=1
fi
exit $failed
