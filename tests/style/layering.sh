#!/usr/bin/env bash
# Checks the tree under ROOT: bash layering.sh ROOT
# Every violation is one line "file:line: what is wrong"; the exit code is 1 when there is one.
set -euo pipefail
cd "$1"

# Each folder and the folders it may include, besides itself. What a folder may include, the folders
# above it may too; that is written out, so that a line says all there is to know.
layers='
core:
tensor:   core
quant:    core
text:     core
io:       core tensor quant
kernels:  core tensor quant
cache:    core tensor quant
nn:       core tensor quant kernels
attn:     core tensor quant kernels cache
mixer:    core tensor quant kernels cache nn attn
model:    core tensor quant kernels cache nn attn mixer io
decode:   core tensor quant kernels cache nn attn mixer io model text
cost:     core tensor quant kernels cache nn attn mixer io model
compress: core tensor quant kernels cache nn attn mixer io model
zoo:      core tensor quant kernels cache nn attn mixer io model
serve:    core tensor quant kernels cache nn attn mixer io model text decode cost
cuda:     core tensor quant kernels cache attn
'
# What only some headers may include from outside: pattern of the include, pattern of the headers.
outside='
^Eigen/                         ^tensor/eigen[a-z_]*[.]hpp$
^(x86|imm|[a-z]mm|avx)[a-z0-9]*intrin[.]h$|^arm_(neon|sve)[.]h$  ^kernels/[a-z0-9_]*(x86|sse|avx|amx|arm|neon|sve)[a-z0-9_]*[.](hpp|inl)$
^xsimd/                         ^kernels/
^(pcre2|utf8proc)[.]h$          ^text/
^cuda|^cublas                   ^cuda/
'
# Headers that may exceed the limit, each with a reason. None so far.
max_lines=400
long_headers=''
max_macros=11

headers=$(cd include/tenon && find . -type f \( -name '*.hpp' -o -name '*.inl' -o -name '*.cuh' \) | sed 's|^\./||' | sort)
if [[ -z $headers ]]; then
  echo "include/tenon holds no headers" >&2
  exit 1
fi

# What the files of cmake/compiled include, one a line.
compiled=$(sed -n 's|^#include "tenon/\(.*\)"$|\1|p' cmake/compiled/*.cpp | sort)

check_headers() {
  # One pass over all lines of all headers.
  (cd include/tenon && awk -v layers="$layers" -v outside="$outside" -v max_lines="$max_lines" \
      -v long_headers="$long_headers" -v max_macros="$max_macros" -v all="$headers" \
      -v compiled="$compiled" '
    function complain(line, text) { print "include/tenon/" FILENAME ":" line ": " text }
    function folder_of(path) { return path ~ /\// ? substr(path, 1, index(path, "/") - 1) : "" }
    # a/b/../c becomes a/c
    function normal(path,   was) {
      do { was = path; sub(/(^|\/)\.\//, "/", path) } while (path != was)
      do { was = path; sub(/[^\/.]+\/\.\.\//, "", path) } while (path != was)
      sub(/^\//, "", path)
      return path
    }
    function finish() {
      if (file == "") return
      if (lines > max_lines && index(" " long_headers " ", " " file " ") == 0)
        print "include/tenon/" file ":" lines ": a header must have at most " max_lines " lines, this one has " lines "; give each job a header of its own"
      if (!once && (file !~ /\.inl$/ || defines(file)))
        print "include/tenon/" file ":1: `#pragma once` is missing"
      if (defines(file)) {
        header = file; sub(/\.inl$/, ".hpp", header)
        if (!((header, file) in included))
          print "include/tenon/" header ":1: it must end by including " file ", unless TENON_COMPILED is defined"
        if (units[file] != 1)
          print "include/tenon/" file ":1: one file of cmake/compiled must include it, " units[file] + 0 " do"
      }
    }
    # x.inl beside x.hpp holds its definitions; any other .inl is text to be included many times.
    function defines(path) {
      return sub(/\.inl$/, ".hpp", path) && (path in exists)
    }
    BEGIN {
      n = split(layers, rows, "\n")
      for (i = 1; i <= n; ++i) if (split(rows[i], word, /:? +|:$/) && word[1] != "") {
        known[word[1]] = 1
        may[word[1], word[1]] = 1
        count = split(rows[i], word, /:? +|:$/)
        for (k = 2; k <= count; ++k) if (word[k] != "") may[word[1], word[k]] = 1
      }
      rules = 0
      n = split(outside, rows, "\n")
      for (i = 1; i <= n; ++i) if (split(rows[i], word, / +/) == 2) {
        ++rules; includes[rules] = word[1]; places[rules] = word[2]
      }
      n = split(all, rows, "\n")
      for (i = 1; i <= n; ++i) exists[rows[i]] = 1
      n = split(compiled, rows, "\n")
      for (i = 1; i <= n; ++i) ++units[rows[i]]
    }
    FNR == 1 {
      finish()
      file = FILENAME; lines = 0; once = 0
      here = folder_of(file)
      if (here != "" && !(here in known))
        complain(1, "the folder " here "/ has no line in the layering; add one to tests/style/layering.sh")
    }
    { lines = FNR }
    /^ *# *pragma +once/ { once = 1 }
    /^ *# *define / {
      name = $0; sub(/^ *# *define +/, "", name); sub(/[^A-Za-z0-9_].*/, "", name)
      if (name !~ /^TENON_/) complain(FNR, "the macro " name " must have the prefix TENON_")
      if (!(name in macros)) { macros[name] = 1; ++macro_count; macro_list = macro_list " " name }
    }
    /^ *# *include *</ {
      target = $0; sub(/^[^<]*</, "", target); sub(/>.*/, "", target)
      if (target ~ /^tenon\//) complain(FNR, "the library includes its own headers relatively, not <" target ">")
      for (r = 1; r <= rules; ++r)
        if (target ~ includes[r] && file !~ places[r])
          complain(FNR, "<" target "> may be included only by headers that match " places[r])
      if (here == "core" && target ~ /\// && target !~ /^(sys|linux|mach)\//)
        complain(FNR, "core/ includes only the standard library and the system, not <" target ">")
    }
    /^ *# *include *"/ {
      target = $0; sub(/^[^"]*"/, "", target); sub(/".*/, "", target)
      path = file; sub(/[^\/]*$/, "", path)
      path = normal(path target)
      if (!(path in exists)) { complain(FNR, "\"" target "\" is no header of the library"); next }
      included[file, path] = 1
      there = folder_of(path)
      if (here == "") next
      if (there == "") complain(FNR, here "/ must not include the umbrella \"" target "\"")
      else if (!((here, there) in may)) complain(FNR, here "/ must not include " there "/ (\"" target "\")")
    }
    END {
      finish()
      if (macro_count > max_macros)
        print "include/tenon: at most " max_macros " macros may be defined, there are " macro_count ":" macro_list
    }
  ' $headers)
}

check_names() {
  find . -type f \( -name '*.hpp' -o -name '*.inl' -o -name '*.cpp' -o -name '*.cuh' \) -not -path './build*' -not -path './.*/*' \
    | sort | awk -F/ '{
        name = tolower($NF); sub(/\.[a-z]+$/, "", name)
        if (match(name, /util|helper|misc|common|new|fast|v2/))
          print substr($0, 3) ":1: a file is named for its job, not \"" substr(name, RSTART, RLENGTH) "\""
      }'
}

violations=$(check_headers; check_names)
if [[ -n $violations ]]; then
  printf '%s\n' "$violations"
  exit 1
fi
echo "$(wc -w <<< "$headers") headers keep the layering"
