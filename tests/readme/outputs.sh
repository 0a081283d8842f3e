#!/usr/bin/env bash
# What README.md shows of a program is what it prints: bash outputs.sh BIN ROOT
#   <!-- output: PROGRAM ARGUMENTS -->     the fenced block right below it is its standard output
#   build/examples/PROGRAM ... --svg FILE  a line of a block: FILE of the tree is what it writes,
#                                          and is below 40 kB and needs no other file
set -uo pipefail
bin=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 outputs=0 figures=0
complain() {
  echo "README.md: $*" >&2
  failed=1
}

while IFS= read -r line; do
  read -ra command <<< "$line"
  awk -v mark="<!-- output: $line -->" '
    $0 == mark { found = 1; next }
    found && /^```/ { if (inside) exit; inside = 1; next }
    inside { print }
  ' "$root/README.md" > "$work/shown"
  "$bin/${command[0]}" "${command[@]:1}" > "$work/printed" || complain "$line: exit code $?"
  diff "$work/shown" "$work/printed" >&2 || complain "the block below \`$line\` must be what it prints"
  outputs=$((outputs + 1))
done < <(sed -n 's/^<!-- output: \(.*\) -->$/\1/p' "$root/README.md")

while IFS= read -r line; do
  read -ra command <<< "$line"
  file=${command[-1]}
  "$bin/${command[0]}" "${command[@]:1:${#command[@]}-2}" "$work/figure.svg" > /dev/null || complain "$line: exit code $?"
  cmp -s "$work/figure.svg" "$root/$file" || complain "$file must be what \`$line\` draws; run it again"
  [[ $(wc -c < "$root/$file") -lt 40000 ]] || complain "$file must be below 40 kB"
  ! grep -qE 'href|url\([^#]|@import|<script' "$root/$file" || complain "$file must need no other file"
  ! grep -oE '#[0-9a-fA-F]{3,6}\b' "$root/$file" | grep -qvE '^#(([0-9a-fA-F])\2\2|([0-9a-fA-F]{2})\3\3)$' ||
    complain "$file must have no colours but greys"
  grep -qF "($file)" "$root/README.md" || complain "$file must be shown"
  figures=$((figures + 1))
done < <(sed -n 's|^build/examples/\(.* --svg [^ ]*\)$|\1|p' "$root/README.md")

[[ $outputs -ge 1 && $figures -ge 5 ]] || complain "one output and five figures must be checked, it is $outputs and $figures"
exit $failed
