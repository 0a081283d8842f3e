#!/usr/bin/env bash
# The example programs as a user meets them: bash programs.sh BIN MODEL SHARED
# Good input gives the known answer; bad input gives exit code 1 and one line on stderr, no more.
set -uo pipefail
bin=$1 model=$2 shared=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() {
  echo "FAILED: $*" >&2
  failed=1
}

# gives WANT COMMAND...: exit code 0 and that on stdout.
gives() {
  local want=$1 got
  shift
  got=$("$@" 2> "$work/err") || complain "$* exited with $?: $(cat "$work/err")"
  [[ $got == "$want" ]] || complain "$* printed: $got"
}
# refuses PART COMMAND...: exit code 1, one line on stderr, which contains PART.
refuses() {
  local part=$1 code
  shift
  timeout 60 "$@" > "$work/out" 2> "$work/err" < /dev/null
  code=$?
  [[ $code == 1 ]] || complain "$* exited with $code instead of 1: $(cat "$work/err")"
  [[ $(wc -l < "$work/err") == 1 ]] || complain "$* printed not one line: $(cat "$work/err")"
  grep -qF -- "$part" "$work/err" || complain "$* does not mention '$part': $(cat "$work/err")"
}

programs=(generate score tokenize inspect quantize)
if [[ -x $bin/convert ]]; then programs+=(convert); fi # it needs Eigen
for program in "${programs[@]}"; do
  "$bin/$program" --help > "$work/out" 2> "$work/err" || complain "$program --help exited with $?"
  [[ -s $work/out && ! -s $work/err ]] || complain "$program --help must print to stdout only"
  refuses required "$bin/$program"
done
gives 'usage: quickstart [MODEL]' "$bin/quickstart" --help
refuses 'nothing of that name' "$bin/quickstart" "$work/absent.gguf"
refuses --no-such "$bin/generate" "$model" --no-such

mkdir "$work/folder.gguf"
: > "$work/empty.gguf"
printf 'not a model, but long enough to have a header of some kind' > "$work/text.gguf"
head -c 5000 "$model" > "$work/cut.gguf"
for program in generate inspect 'score --tokens 1,2 --perplexity' 'tokenize hello' 'quantize out.gguf q8_0'; do
  read -r name rest <<< "$program"
  for case in 'absent:nothing of that name' 'folder:directory' 'empty:empty' 'text:GGUF' 'cut:cut.gguf'; do
    # shellcheck disable=SC2086
    refuses "${case#*:}" "$bin/$name" "$work/${case%%:*}.gguf" $rest
  done
done

refuses 'max_tokens' "$bin/generate" "$model" --max-tokens -1
refuses 'temperature' "$bin/generate" "$model" --temperature nan
refuses 'temperature' "$bin/generate" "$model" --temperature 1e9
refuses 'top_k' "$bin/generate" "$model" --top-k -1
refuses 'top_p' "$bin/generate" "$model" --top-p 1.5
refuses 'min_p' "$bin/generate" "$model" --min-p -0.1
refuses 'seed' "$bin/generate" "$model" --seed -1
refuses 'seed' "$bin/generate" "$model" --seed 18446744073709551616
refuses 'threads' "$bin/generate" "$model" --threads -1
refuses 'threads' "$bin/generate" "$model" --threads 100000
refuses 'context' "$bin/generate" "$model" --ctx -1
refuses 'context' "$bin/generate" "$model" --ctx 2000000000
refuses 'ctx' "$bin/generate" "$model" --ctx 99999999999999
refuses 'one of f16, f32, q8_0' "$bin/generate" "$model" --cache q3
refuses 'context' "$bin/generate" "$model" --ctx 4 --prompt 'Once upon a time there was a king'
refuses 'TENON_ISA' env TENON_ISA=sse9 "$bin/generate" "$model"
refuses '1024' "$bin/score" "$model" --tokens 1,2,1024 --perplexity
refuses '-1' "$bin/score" "$model" --tokens 1,-1 --perplexity
refuses 'whole numbers' "$bin/score" "$model" --tokens 1,x --perplexity
refuses 'at least' "$bin/score" "$model" --tokens 1 --perplexity --window 0
refuses 'one of --tokens and --text-file' "$bin/score" "$model" --perplexity
refuses '--logits or --perplexity' "$bin/score" "$model" --tokens 1,2
refuses 'activations' "$bin/score" "$model" --tokens 1,2 --perplexity --activations f64
refuses 'chunk' "$bin/score" "$model" --tokens 1,2 --perplexity --chunk -3
refuses 'nothing of that name' "$bin/score" "$model" --text-file "$work/absent.txt" --perplexity
refuses '99999' "$bin/tokenize" "$model" --decode 5,99999
refuses 'whole numbers' "$bin/tokenize" "$model" --decode five
refuses 'one of f32' "$bin/quantize" "$model" "$work/out.gguf" q9
mkfifo "$work/pipe"
refuses 'regular file' "$bin/quantize" "$model" "$work/pipe" q8_0
refuses 'could not be written' bash -c '"$0" --help > /dev/full' "$bin/generate"
refuses 'could not be written' bash -c '"$0" "$1" > /dev/full' "$bin/generate" "$model"
[[ ! -e $work/out.gguf ]] || complain 'a refused quantize left a file'

# The shipped model.
gives 1,392,391,261,375 "$bin/tokenize" "$model" 'Once upon a time'
gives 'Once upon a time' "$bin/tokenize" "$model" --decode 1,392,391,261,375
gives 'a b' "$bin/generate" "$model" --prompt 'a b' --max-tokens 0
once=$("$bin/generate" "$model" --ids --max-tokens 40 --threads 1)
for variant in '--threads 2' '--ctx 300'; do
  # shellcheck disable=SC2086
  gives "$once" "$bin/generate" "$model" --ids --max-tokens 40 $variant
done
warm=$("$bin/generate" "$model" --temperature 0.8 --top-p 0.9 --seed 3 --max-tokens 40)
gives "$warm" "$bin/generate" "$model" --temperature 0.8 --top-p 0.9 --seed 3 --max-tokens 40
"$bin/generate" "$model" --prompt $'\xff\xfe bytes that are no text' --max-tokens 5 > /dev/null || complain 'invalid UTF-8 in a prompt must work'
gives 392 "$bin/generate" "$model" --prompt '' --ids --max-tokens 1 # of the start token alone: Once
"$bin/generate" "$model" --stats --max-tokens 20 2>&1 > /dev/null | grep 'read bandwidth' > /dev/null || complain 'generate --stats'
printf 'Once upon a time there was a king' > "$work/text"
alone=$("$bin/score" "$model" --text-file "$work/text" --perplexity)
gives "$alone" "$bin/score" "$model" --text-file "$work/text" --perplexity --logits "$work/logits.npy"
[[ -s $work/logits.npy ]] || complain 'score --logits'
"$bin/inspect" "$model" --ctx 100 | grep 'memory for --ctx 100' > /dev/null || complain 'inspect --ctx'
"$bin/quickstart" "$model" | grep '^Once upon a time' > /dev/null || complain 'quickstart'
"$bin/quantize" "$model" "$work/out.gguf" q4_0 > /dev/null && "$bin/inspect" "$work/out.gguf" > /dev/null || complain quantize

# Conversions of a cache: 4 layers of 2 key/value heads of 32 values.
if [[ -x $bin/convert ]]; then
  for _ in {1..20}; do printf 'Once upon a time there was a little girl. She had a big red ball. '; done > "$work/long"
  receipt() { # receipt BYTES CONVERSION...: what the cache takes afterwards
    "$bin/convert" "$model" "$work/out.gguf" "${@:2}" --text "$work/long" > "$work/out" \
      || complain "convert ${*:2}"
    grep -qF "cache before: 1024 bytes per token (16-bit)" "$work/out" || complain "convert ${*:2}: $(cat "$work/out")"
    grep -qF "cache after: $1 (16-bit)" "$work/out" || complain "convert ${*:2}: $(cat "$work/out")"
    grep -q 'KL.*perplexity' "$work/out" || complain "convert ${*:2} measured nothing"
    "$bin/generate" "$work/out.gguf" --max-tokens 5 > "$work/out" || complain "generate after convert ${*:2}"
  }
  receipt '512 bytes per token' gqa 1
  receipt '512 bytes per token' cla 2
  receipt '0 bytes per token and 69632 bytes per sequence' window 64 4
  receipt '768 bytes per token' mla 32
  refuses 'divide' "$bin/convert" "$model" "$work/refused.gguf" gqa 3
  refuses '1 to 4' "$bin/convert" "$model" "$work/refused.gguf" cla 0
  refuses 'window' "$bin/convert" "$model" "$work/refused.gguf" window 99999999999
  refuses '1 to 64' "$bin/convert" "$model" "$work/refused.gguf" mla 65
  refuses 'gqa, cla, window or mla' "$bin/convert" "$model" "$work/refused.gguf" mqa 1
  [[ ! -e $work/refused.gguf ]] || complain 'a refused convert left a file'
fi

# The reference text, where it is: perplexity to four digits, and greedy ids.
if [[ -f $shared/models/stories260K.gguf ]]; then
  gives 'tokens 1870  nll 1.258095 nats/token  perplexity 3.518711' "$bin/score" "$shared/models/stories260K.gguf" \
    --text-file "$shared/data/stories/story4k.txt" --perplexity
  gives 'tokens 1870  nll 1.259027 nats/token  perplexity 3.521992' "$bin/score" "$shared/models/stories260K-q8_0.gguf" \
    --text-file "$shared/data/stories/story4k.txt" --perplexity --activations f32 --chunk 7 --threads 2
  gives 432,383,286,261,376,298,315,421,395,317 "$bin/generate" "$shared/models/stories260K.gguf" --ids --cache f32 --max-tokens 10
fi
exit $failed
