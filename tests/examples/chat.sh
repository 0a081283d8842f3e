#!/usr/bin/env bash
# The chat program as a script of lines drives it: bash chat.sh BIN MODEL
set -uo pipefail
bin=$1 model=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() {
  echo "FAILED: $*" >&2
  failed=1
}
# The model was trained on stories and has no template: whatever was said is one text.
printf '{%% for m in messages %%}{{ m.content }}{%% endfor %%}' > "$work/plain.jinja"
# The same with turns, and a complaint about two turns of one speaker.
cat > "$work/turns.jinja" << 'JINJA'
{{ bos_token }}{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}
{{ m.role }}: {{ m.content }}
{% endfor %}
{% if add_generation_prompt %}assistant: {% endif %}
JINJA

# talk OPTIONS... < LINES: answers in out, everything else in err.
talk() { timeout 120 "$bin/chat" "$model" --temperature 0 --threads 1 "$@" > "$work/out" 2> "$work/err"; }
says() { grep -qF -- "$1" "$work/err" || complain "${2:-the chat} does not say '$1': $(cat "$work/err")"; }
refuses() {
  local part=$1 code
  shift
  timeout 60 "$@" > "$work/out" 2> "$work/err" < /dev/null
  code=$?
  [[ $code == 1 && $(wc -l < "$work/err") == 1 ]] || complain "$* exited with $code: $(cat "$work/err")"
  says "$part" "$*"
}

"$bin/chat" --help > "$work/out" || complain '--help'
refuses required "$bin/chat"
refuses 'tokenizer.chat_template' "$bin/chat" "$model"
refuses 'can be read' "$bin/chat" "$model" --template "$work/absent"
printf 'a\n{%% if x' > "$work/bad.jinja"
refuses 'row 2, column' "$bin/chat" "$model" --template "$work/bad.jinja"
refuses 'NAME=VALUE' "$bin/chat" "$model" --template "$work/plain.jinja" --set nothing

# The answer is what generate continues; the second turn goes on from the rows of the first.
printf 'Once upon a time\n/stats\nThen\n/stats\n' | talk --template "$work/plain.jinja" --max-tokens 20 || complain 'chat of two turns'
want=$("$bin/generate" "$model" --prompt 'Once upon a time' --max-tokens 20)
[[ "Once upon a time$(head -1 "$work/out")" == "$want" ]] || complain "the answer differs from: $want"
says '5 tokens,'
says '0 more reused'
says 'messages 4'
reused=$(grep -o '[0-9]* more reused' "$work/err" | tail -1)
((${reused%% *} >= 20)) || complain "the second turn reused too little: $reused"

# What is saved can be gone on with, here and after a start; the text is the same as without.
printf 'Once upon a time\nThen\n' | talk --template "$work/plain.jinja" --max-tokens 20
cp "$work/out" "$work/whole"
printf 'Once upon a time\n/save %s\n/reset\nThe cat\n/load %s\nThen\n' "$work/saved" "$work/saved" \
  | talk --template "$work/plain.jinja" --max-tokens 20 || complain 'save and load'
[[ "$(sed -n 1p "$work/out") $(sed -n '3,$p' "$work/out")" == "$(sed -n 1p "$work/whole") $(sed -n '2,$p' "$work/whole")" ]] \
  || complain "a loaded conversation went on differently: $(cat "$work/out")"
printf '/load %s\nThen\n' "$work/saved" | talk --template "$work/plain.jinja" --max-tokens 20
[[ $(cat "$work/out") == $(sed -n '2,$p' "$work/whole") ]] || complain 'a conversation loaded at the start went on differently'

# Commands, and what goes wrong in one of them, do not end the program.
printf '{"messages": [{"role": "user"}]}' > "$work/half"
printf '[1, 2' > "$work/no_json"
printf '{"messages": [{"role": "tool", "content": "x"}]}' > "$work/tool"
printf '/help\n/nothing\n/load %s\n/load %s\n/load %s\nHi\n/reset\n/save\n/save %s/absent/x\n/system Tell stories.\n//x\n/stats\n/quit\nnever\n' \
  "$work/half" "$work/no_json" "$work/tool" "$work" | talk --template "$work/turns.jinja" --max-tokens 3 || complain 'commands'
for part in '/system TEXT' 'no command "/nothing"' 'file that /save wrote' 'must be JSON' 'no tools here' 'name of a file' \
  'folder that can be written' 'messages 3'; do
  says "$part" commands
done
[[ $(wc -l < "$work/out") == 1 ]] || complain "one answer was asked for: $(cat "$work/out")"

# Bytes that are no text are answered like any, as U+FFFD, and what is saved is JSON all the same.
printf 'Once \xff upon \xe2\x80\n\xed\xa0\x80\xc3(\n/save %s\n/reset\n/load %s\nThen\n' "$work/bytes" "$work/bytes" \
  | talk --template "$work/plain.jinja" --max-tokens 5 || complain 'bytes that are no text'
[[ $(wc -l < "$work/out") == 3 ]] || complain "three answers were asked for: $(cat "$work/out")"
iconv -f utf-8 -t utf-8 "$work/bytes" > /dev/null || complain 'what was saved is not UTF-8'
grep -qF $'Once \xef\xbf\xbd upon \xef\xbf\xbd"' "$work/bytes" || complain "the message was saved as: $(cat "$work/bytes")"

# What /load says names the file.
mkdir "$work/folder"
printf '/load\n/load %s/absent\n/load %s/folder\n/load %s/half\n/load %s/no_json\n' "$work" "$work" "$work" "$work" \
  | talk --template "$work/plain.jinja" || complain 'loads'
for part in '/load must be followed by the name of a file' "$work/absent: must be a file" 'nothing of that name' \
  "$work/folder: must be a file" 'it is a directory' "$work/half: a conversation must be" "$work/no_json: the text must be JSON"; do
  says "$part" loads
done

# A context that is full.
{
  printf 'Once upon a time\n'
  printf 'and then %.0s' {1..40}
  printf '\n/reset\nOnce upon a time\n'
} | talk --template "$work/plain.jinja" --ctx 40 || complain 'a full context'
says 'the context of 40 tokens is full'
says 'must leave room in the context of 40 tokens'
[[ $(wc -l < "$work/out") == 2 ]] || complain "two answers fit: $(cat "$work/out")"

# Ctrl-C stops the answer, here while the message is read, and not the program.
mkfifo "$work/lines"
"$bin/chat" "$model" --template "$work/plain.jinja" --ctx 60000 --threads 1 --max-tokens 5 \
  < "$work/lines" > "$work/out" 2> "$work/err" &
exec 3> "$work/lines"
{
  for _ in {1..4000}; do printf 'Once upon a time there was a big red dog. '; done
  printf '\n'
} >&3
for _ in {1..100}; do
  sleep 0.2
  kill -INT $!
  grep -q '^\[stopped\]$' "$work/err" && break
done
says '[stopped]' 'after Ctrl-C the chat'
printf 'Once upon a time\n/stats\n/quit\n' >&3
exec 3>&-
wait $! || complain "after Ctrl-C the chat ended with $?: $(cat "$work/err")"
says 'messages 2' 'after Ctrl-C the chat'
exit $failed
