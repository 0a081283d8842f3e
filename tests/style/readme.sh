#!/usr/bin/env bash
# Checks ROOT/README.md against the files it speaks of: bash readme.sh ROOT
#
# It must name the two commands, each on a line of its own, and every architecture of the zoo. A fenced block right below
#   <!-- file: PATH -->          must be that file, character for character;
#   <!-- file: PATH [name] -->   must be its region between two lines `// [name]`, less the
#                                indentation of the region's first line.
set -euo pipefail
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() {
  echo "README.md: $*"
  failed=1
}

for command in 'bash examples/demo.sh' 'bash tests/check.sh'; do
  grep -qFx "$command" README.md || complain "the line \`$command\` must be there, it is not"
done

# Every architecture that the zoo opens is in the table of what works.
for name in $(grep -o 'Entry<"[^"]*"' include/tenon/zoo/registry.hpp 2> /dev/null | cut -d'"' -f2); do
  grep -qF "\`$name\`" README.md || complain "the architecture \`$name\` of zoo/registry.hpp must be named, it is not"
done

# Writes the blocks to $work/0, $work/1, ... and prints their "line PATH [name]".
blocks=$(awk -v work="$work" '
  /^<!-- file: .* -->$/ {
    sub(/^<!-- file: /, ""); sub(/ -->$/, "")
    from = NR " " $0
    next
  }
  /^```/ && inside { inside = 0; close(out); next }
  /^```/ && from != "" { print from; from = ""; inside = 1; out = work "/" n++; printf "" > out; next }
  /^```/ { inside = 1; out = "/dev/null"; next }
  inside { print > out; next }
  from != "" && NF { print from " (no block)"; from = "" }
  END { if (from != "") print from " (no block)" }
' README.md)

n=0
while read -r line path name; do
  [[ -n $line ]] || continue
  if [[ "$path $name" == *"(no block)" ]]; then
    complain "line $line names $path, but no fenced block follows"
    continue
  fi
  block=$work/$((n++))
  if [[ ! -f $path ]]; then
    complain "line $line names $path, which is no file"
    continue
  fi
  expected=$path
  if [[ -n $name ]]; then
    expected=$work/expected
    awk -v mark="// $name" '
      { text = $0; sub(/^ +/, "", text) }
      text == mark { ++marks; inside = !inside; next }
      inside {
        if (first++ == 0) { match($0, /^ */); indent = RLENGTH }
        match($0, /^ */)
        print substr($0, (RLENGTH < indent ? RLENGTH : indent) + 1)
      }
      END { exit marks != 2 }
    ' "$path" > "$expected" || { complain "line $line: $path must hold two lines // $name, it does not"; continue; }
  fi
  if ! diff -u --label "$path $name" --label "README.md:$line" "$expected" "$block"; then
    complain "the block at line $line differs from $path $name; copy the file's text into it"
  fi
done <<< "$blocks"
((failed)) || echo "README.md: both commands and $n blocks agree with the files"
exit $failed
