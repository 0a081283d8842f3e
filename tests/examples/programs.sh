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

programs=(generate score tokenize inspect quantize pack custom_mask variants roofline)
if [[ -x $bin/convert ]]; then programs+=(convert); fi # it needs Eigen
for program in "${programs[@]}"; do
  "$bin/$program" --help > "$work/out" 2> "$work/err" || complain "$program --help exited with $?"
  [[ -s $work/out && ! -s $work/err ]] || complain "$program --help must print to stdout only"
  refuses required "$bin/$program"
done
gives 'usage: quickstart [MODEL [PROMPT]]' "$bin/quickstart" --help
gives 'usage: branches [MODEL [PROMPT]]' "$bin/branches" --help
gives 'usage: compose_hybrid [MODEL]' "$bin/compose_hybrid" --help
refuses 'nothing of that name' "$bin/quickstart" "$work/absent.gguf"
refuses --no-such "$bin/generate" "$model" --no-such

mkdir "$work/folder.gguf"
: > "$work/empty.gguf"
printf 'not a model, but long enough to have a header of some kind' > "$work/text.gguf"
head -c 5000 "$model" > "$work/cut.gguf"
for program in generate inspect 'score --tokens 1,2 --perplexity' 'tokenize hello' 'quantize out.gguf q8_0' 'pack out.gguf'; do
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
refuses '--ctx: must be a whole number from 0 to 268435456, it is "-1"' "$bin/generate" "$model" --ctx -1
refuses '--ctx: must be a whole number from 0 to 268435456' "$bin/generate" "$model" --ctx 2000000000
refuses 'ctx' "$bin/generate" "$model" --ctx 99999999999999
refuses 'one of f16, f32, q8_0' "$bin/generate" "$model" --cache q3
refuses 'the prompt must fit the context of 4 tokens, it has 10; give --ctx 10 or more' "$bin/generate" "$model" --ctx 4 --prompt 'Once upon a time there was a king'
refuses 'TENON_ISA' env TENON_ISA=sse9 "$bin/generate" "$model"
refuses '1024' "$bin/score" "$model" --tokens 1,2,1024 --perplexity
refuses '-1' "$bin/score" "$model" --tokens 1,-1 --perplexity
refuses 'whole numbers' "$bin/score" "$model" --tokens 1,x --perplexity
refuses 'at least' "$bin/score" "$model" --tokens 1 --perplexity --window 0
refuses 'one of --tokens and --text-file' "$bin/score" "$model" --perplexity
refuses '--logits or --perplexity' "$bin/score" "$model" --tokens 1,2
refuses 'activations' "$bin/score" "$model" --tokens 1,2 --perplexity --activations f64
refuses '--chunk: must be a whole number from 0 to 1048576' "$bin/score" "$model" --tokens 1,2 --perplexity --chunk -3
refuses 'nothing of that name' "$bin/score" "$model" --text-file "$work/absent.txt" --perplexity
refuses '99999' "$bin/tokenize" "$model" --decode 5,99999
refuses 'whole numbers' "$bin/tokenize" "$model" --decode five
refuses 'FORMAT must be one of f32' "$bin/quantize" "$model" "$work/out.gguf" q9
mkfifo "$work/pipe"
refuses 'regular file' "$bin/quantize" "$model" "$work/pipe" q8_0
refuses 'could not be written' bash -c '"$0" --help > /dev/full' "$bin/generate"
refuses 'could not be written' bash -c '"$0" "$1" > /dev/full' "$bin/generate" "$model"
refuses 'nothing of that name' "$bin/quickstart" "$work/absent.gguf" 'Once upon a time'
refuses 'nothing of that name' "$bin/branches" "$work/absent.gguf"
[[ $("$bin/branches" "$model" | grep -c '^[123]: ') == 3 ]] || complain 'branches: three endings'
refuses 'nothing of that name' "$bin/compose_hybrid" "$work/absent.gguf"
refuses 'sliding_window' "$bin/compose_hybrid" "$model"
refuses 'nothing of that name' "$bin/custom_mask" "$model" "$work/absent.txt"
refuses 'runs' "$bin/variants" "$work" "$model" --runs 0
# What cannot be written is found before the work, and nothing of it stays.
mkdir "$work/taken.gguf"
for program in 'quantize q8_0' 'pack'; do
  read -r name rest <<< "$program"
  # shellcheck disable=SC2086
  refuses 'folder that can be written to' "$bin/$name" "$model" "$work/absent/out.gguf" $rest
  # shellcheck disable=SC2086
  refuses 'it is a directory' "$bin/$name" "$model" "$work/taken.gguf" $rest
done
refuses 'all bytes must reach the disk' bash -c 'ulimit -f 8; exec "$@"' _ "$bin/quantize" "$model" "$work/out.gguf" q8_0 --requantize
[[ -z $(find "$work" -name '*.part-*') ]] || complain 'a file that was not finished stays'
for format in q8_1 q8_k; do
  refuses 'FORMAT must be one of' "$bin/quantize" "$model" "$work/out.gguf" "$format"
  refuses 'must be one of f32' "$bin/generate" "$model" --quantize "$format"
done
[[ ! -e $work/out.gguf ]] || complain 'a refused quantize left a file'

# The shipped model.
gives 1,392,391,261,375 "$bin/tokenize" "$model" 'Once upon a time'
gives 'Once upon a time' "$bin/tokenize" "$model" --decode 1,392,391,261,375
[[ $(printf 'Once upon a time' | "$bin/tokenize" "$model") == 1,392,391,261,375 ]] || complain 'tokenize of the standard input'
# Bytes that are no text are encoded as they are and come back; so does a megabyte in one line, in time
# that grows as the line does.
bytes=$'a\xff\xe2\x80 b\xed\xa0\x80\xc3('
gives "$bytes" "$bin/tokenize" "$model" --decode "$("$bin/tokenize" "$model" "$bytes")"
gives "$bytes" "$bin/tokenize" "$model" --decode "$(printf %s "$bytes" | "$bin/tokenize" "$model")"
head -c 1000000 /dev/zero | tr '\0' a > "$work/line"
timeout 10 "$bin/tokenize" "$model" < "$work/line" > "$work/ids" || complain 'a megabyte in one line was not encoded'
"$bin/tokenize" "$model" --decode < "$work/ids" > "$work/text" || complain 'a megabyte of ids was not decoded'
[[ $(head -c 1000000 "$work/text") == $(cat "$work/line") ]] || complain 'a megabyte in one line came back changed'
gives 'a b' "$bin/generate" "$model" --prompt 'a b' --max-tokens 0
once=$("$bin/generate" "$model" --ids --max-tokens 40 --threads 1)
for variant in '--threads 2' '--ctx 300'; do
  # shellcheck disable=SC2086
  gives "$once" "$bin/generate" "$model" --ids --max-tokens 40 $variant
done
refuses 'it is a directory' "$bin/score" "$model" --tokens 1,99999999 --logits "$work/folder.gguf" # before the id
warm=$("$bin/generate" "$model" --temperature 0.8 --top-p 0.9 --seed 3 --max-tokens 40)
gives "$warm" "$bin/generate" "$model" --temperature 0.8 --top-p 0.9 --seed 3 --max-tokens 40
"$bin/generate" "$model" --prompt $'\xff\xfe bytes that are no text' --max-tokens 5 > /dev/null || complain 'invalid UTF-8 in a prompt must work'
gives 392 "$bin/generate" "$model" --prompt '' --ids --max-tokens 1 # of the start token alone: Once
"$bin/generate" "$model" --stats --max-tokens 20 2>&1 > /dev/null | grep 'read bandwidth' > /dev/null || complain 'generate --stats'
printf 'Once upon a time there was a king' > "$work/text"
for _ in {1..20}; do printf 'Once upon a time there was a little girl. She had a big red ball. '; done > "$work/long"
alone=$("$bin/score" "$model" --text-file "$work/text" --perplexity)
gives "$alone" "$bin/score" "$model" --text-file "$work/text" --perplexity --logits "$work/logits.npy"
[[ -s $work/logits.npy ]] || complain 'score --logits'
"$bin/inspect" "$model" --ctx 100 | grep 'memory for --ctx 100' > /dev/null || complain 'inspect --ctx'
# 1024 bytes of cache a token: one token more takes 1024 bytes more, and is what then fits.
gives 'cache 409600, longest 100' bash -c '"$@" | sed -n "s/^  cache  *\([0-9]*\) bytes$/cache \1,/p; s/^longest.*: / longest /p" | tr -d "\n"' \
  - "$bin/inspect" "$model" --ctx 100 --batch 4 --memory "$("$bin/inspect" "$model" --ctx 100 --batch 4 \
  | awk '/^  all .*bytes$/ { print ($2 + 0.5) / 1073741824 }' CONVFMT=%.12g OFMT=%.12g | tail -1)"
for size in -1 nan inf 1e7 x; do
  refuses "--memory: must be a number from 0 to 1000000, it is \"$size\"" "$bin/inspect" "$model" --memory "$size"
done
refuses '--batch: must be a whole number from 1 to 1048576, it is "0"' "$bin/inspect" "$model" --batch 0
refuses '--ctx: must be a whole number from 0 to 268435456, it is "-1"' "$bin/inspect" "$model" --ctx -1
"$bin/quickstart" "$model" | grep '^Once upon a time' > /dev/null || complain 'quickstart'
"$bin/quickstart" "$model" 'One day' | grep '^One day' > /dev/null || complain 'quickstart with a prompt'
"$bin/quantize" "$model" "$work/out.gguf" q4_0 --requantize > /dev/null && "$bin/inspect" "$work/out.gguf" > /dev/null || complain quantize

# Quantized while it loads: the tokens of the file quantized before.
if [[ -f $shared/models/stories260K.gguf ]]; then
  "$bin/quantize" "$shared/models/stories260K.gguf" "$work/out.gguf" q4_0 --pure > /dev/null || complain 'quantize q4_0'
  gives "$("$bin/generate" "$work/out.gguf" --ids --max-tokens 40)" \
    "$bin/generate" "$shared/models/stories260K.gguf" --quantize Q4_0 --ids --max-tokens 40
  # A folder gives the file that the same model in GGUF gives, but for its texts.
  "$bin/quantize" "$shared/models/stories260K" "$work/folder-q4_0.gguf" q4_0 --pure > /dev/null || complain 'quantize a folder'
  "$bin/inspect" "$shared/models/stories260K" | grep '^keys that change nothing' > /dev/null || complain 'inspect a folder'
  "$bin/inspect" "$shared/models/stories260K/config.json" > /dev/null || complain 'inspect a file of a folder'
fi
refuses 'one of f32' "$bin/generate" "$model" --quantize q9

"$bin/pack" "$model" "$work/packed.gguf" || complain pack
gives "$once" "$bin/generate" "$work/packed.gguf" --ids --max-tokens 40 --threads 1 --verify

# Every format can be written and run; rows that do not fill blocks fall back to others, named.
refuses 'PATTERN=FORMAT' "$bin/quantize" "$model" "$work/refused.gguf" q8_0 --tensor q8_0
refuses 'it is "q9"' "$bin/quantize" "$model" "$work/refused.gguf" q8_0 --tensor '*=q9'
refuses 'nothing of that name' "$bin/quantize" "$model" "$work/refused.gguf" q8_0 --imatrix "$work/absent"
refuses 'importance matrix' "$bin/quantize" "$model" "$work/refused.gguf" q8_0 --imatrix "$work/text.gguf"
# One entry "x", used once, of one column of importance 1: of no tensor of this model.
printf '\1\0\0\0\1\0\0\0x\1\0\0\0\1\0\0\0\0\0\200\77' > "$work/imatrix.dat"
refuses 'another model' "$bin/quantize" "$model" "$work/refused.gguf" q8_0 --imatrix "$work/imatrix.dat"
[[ ! -e $work/refused.gguf ]] || complain 'a refused quantize left a file'
if [[ -f $shared/models/trained/story-gqa.gguf ]]; then
  gqa=$shared/models/trained/story-gqa.gguf
  for format in q5_0 q5_1 q2_k q3_k_s q3_k_m q3_k_l q4_k_s q4_k_m q5_k_m q6_k iq4_nl iq4_xs nvfp4 iq3_s; do
    "$bin/quantize" "$gqa" "$work/out.gguf" "$format" > "$work/out" || complain "quantize $format"
    [[ ! -s $work/out ]] || complain "quantize $format: $(cat "$work/out")"
    "$bin/generate" "$work/out.gguf" --max-tokens 5 > /dev/null || complain "generate after quantize $format"
  done
  "$bin/quantize" "$gqa" "$work/out.gguf" q4_k_m --tensor '*.ffn_*=q2_k' --tensor 'blk.0.*=q8_0' || complain 'quantize --tensor'
  "$bin/inspect" "$work/out.gguf" > "$work/out"
  grep -qE '^  blk.0.ffn_up.weight +q8_0' "$work/out" && grep -qE '^  blk.1.ffn_up.weight +q2_K' "$work/out" \
    && grep -qE '^  token_embd.weight +q6_K' "$work/out" || complain "quantize --tensor: $(cat "$work/out")"
  before=$(cksum < "$work/out.gguf")
  refuses '--requantize' "$bin/quantize" "$work/out.gguf" "$work/refused.gguf" q5_0
  refuses 'another file than IN' "$bin/quantize" "$work/out.gguf" "$work/out.gguf" q5_0 --requantize
  refuses 'it matches none' "$bin/quantize" "$gqa" "$work/refused.gguf" q8_0 --tensor 'nothing=q8_0'
  { bash -c 'ulimit -f 200; exec "$@"' - "$bin/quantize" "$gqa" "$work/out.gguf" q8_0; } 2> /dev/null \
    && complain 'a file that does not fit must not succeed'
  [[ $(cksum < "$work/out.gguf") == "$before" ]] || complain 'a quantize that dies must leave the old file'
  "$bin/quantize" "$work/out.gguf" "$work/again.gguf" q5_0 --pure --requantize || complain 'quantize --requantize'
fi
# What llama-quantize makes of the same file, tensor by tensor: the bytes behind the header.
if [[ -f $shared/models/stories260K.gguf ]]; then
  for format in q8_0 q4_0; do
    "$bin/quantize" "$shared/models/stories260K.gguf" "$work/out.gguf" "$format" > "$work/out" || complain "quantize $format"
    grep -q '^blk.0.ffn_down.weight: .* multiple of 32 values, they have 172; stored as f16$' "$work/out" || complain "fallback: $(cat "$work/out")"
    [[ $(stat -c %s "$work/out.gguf") == $(stat -c %s "$shared/models/stories260K-$format.gguf") ]] || complain "size of $format"
    for file in "$work/out.gguf" "$shared/models/stories260K-$format.gguf"; do
      "$bin/inspect" "$file" | sed -n '/^tensors/,/^  all/p' | sort
    done | sort | uniq -c | grep -qv '^ *2 ' && complain "types of $format differ from llama-quantize's"
  done
  "$bin/quantize" "$shared/models/stories260K.gguf" "$work/out.gguf" q4_K > "$work/out" || complain 'quantize narrow rows'
  grep -q '^blk.0.attn_q.weight: q4_K must have rows of a multiple of 256 values, they have 64; stored as q5_0$' "$work/out" || complain "quantize narrow rows: $(cat "$work/out")"
fi

# Cache bytes from types alone. 36 layers: 2 x 8 heads x 128 values x 2 bytes each; against 12 layers
# of 1024 rows and one that keeps all, each row 2 x 128 values of 34 bytes in 32, a page number per 16.
gives '36 layers     per token B      fixed B    at 2048, B    at 8192, B
gqa-8 f16       147456.00            0      301989888     1207959552
hybrid q8_0        272.25      3342336        3899904        5572608
at 2048 tokens the hybrid'"'"'s cache is 77.4 times smaller
at 8192 tokens the hybrid'"'"'s cache is 216.8 times smaller' "$bin/compose_hybrid"

# A user's mask: the causal line is what `score` says; whoever sees less predicts worse.
perplexities=$("$bin/custom_mask" "$model" "$work/long" | sed 's/.*perplexity //')
gives "$(head -1 <<< "$perplexities")" bash -c '"$@" | sed "s/.*perplexity //"' - "$bin/score" "$model" \
  --text-file "$work/long" --cache f16 --perplexity
[[ $(wc -l <<< "$perplexities") == 3 && $(sort -g <<< "$perplexities") == "$perplexities" ]] || complain "custom_mask: $perplexities"
"$bin/custom_mask" "$model" | grep '^dilated ' > /dev/null || complain 'custom_mask without a text'

# The cost of a shape and of a file: the lecture's 13B at batch 64, and the bytes of this file's cache.
"$bin/roofline" --shape llama2-13b --hardware h100 --ctx 1024 --batch 64 --svg "$work/cost.svg" --html "$work/cost.html" > "$work/out" || complain roofline
grep -q '13015864320  26031728640' "$work/out" || complain 'roofline must count parameters and bytes'
grep -q '1024     64  79.72 GB   yes' "$work/out" || complain 'roofline must say what fits'
grep -q '</svg>' "$work/cost.svg" && grep -q '</html>' "$work/cost.html" || complain 'roofline must draw'
"$bin/roofline" "$model" --ctx 100 --batch 1 > "$work/out" && grep -q 'cache of a token *1024' "$work/out" || complain 'roofline of a file'
[[ $(grep -o '</svg>' "$work/cost.html" | wc -l) == 5 ]] || complain 'roofline must draw five figures on its page'
grep -q '(FLOPs per byte)' "$work/cost.svg" && grep -q '(FLOP/s)' "$work/cost.svg" || complain 'roofline must label axes with units'
for figure in 'latency:(ms)' 'throughput:(tokens/s)' 'cache:(bytes)' 'parts:(%)'; do
  "$bin/roofline" --shape llama2-13b --hardware h100 --figure "${figure%%:*}" --svg "$work/cost.svg" > "$work/out" || complain "roofline ${figure%%:*}"
  grep -qF "${figure#*:}" "$work/cost.svg" || complain "roofline ${figure%%:*} must label axes with units"
  ! grep -qE 'nan|inf' "$work/cost.svg" || complain "roofline ${figure%%:*} must have numbers"
done
grep -q 'decode B 64  *attention .* memory$' "$work/out" || complain 'roofline must say what bounds a block'
"$bin/roofline" "$model" --ctx 100 --batch 1 --html "$work/cost.html" > "$work/out" || complain 'roofline of a file on a page'
grep -q 'Machine' "$work/out" && grep -q 'balance' "$work/out" || complain 'roofline must measure the host'
refuses 'textbook must be of a' "$bin/roofline" "$model" --textbook
refuses '--figure' "$bin/roofline" --shape llama3-8b --figure none
refuses 'shape must be one of' "$bin/roofline" --shape none
refuses 'hardware must be one of' "$bin/roofline" --shape llama3-8b --hardware none
refuses '2^63' "$bin/roofline" --shape llama2-13b --hardware h100 --ctx 4741000 --batch 1
refuses 'choose kv_heads' "$bin/roofline" --shape llama2-13b --hardware h100 --textbook --kv-heads 7
refuses '"010"' "$bin/roofline" --shape llama2-13b --hardware h100 --batch 010
refuses '--svg' "$bin/roofline" --shape llama2-13b --hardware h100 --figure latency
refuses '--textbook' "$bin/roofline" --shape llama2-13b --hardware h100 --kv-heads 8
refuses '--textbook' "$bin/roofline" --shape llama2-13b --hardware h100 --textbook --svg "$work/cost.svg"
cp "$model" "$work/own.gguf"
for option in --svg --html; do
  refuses 'no part of a checkpoint' "$bin/roofline" "$work/own.gguf" --hardware h100 $option "$work/own.gguf"
done
cp "$model" "$work/<a&b>\".gguf"
"$bin/roofline" "$work/<a&b>\".gguf" --hardware h100 --chips 8 --ctx 9 --svg "$work/cost.svg" > "$work/out" || complain 'roofline of an odd name'
grep -qF 'Roofline: &lt;a&amp;b&gt;&quot; on 8 x H100<' "$work/cost.svg" || complain 'roofline must escape names'
"$bin/roofline" --shape deepseek-v2 --hardware laptop8g --figure latency --svg "$work/cost.svg" > "$work/out" || complain 'roofline of what does not fit'
grep -q 'no line: not one sequence fits' "$work/cost.svg" || complain 'roofline must say why there is no line'
cmp "$model" "$work/own.gguf" || complain 'roofline must leave the checkpoint as it is'
refuses 'one of MODEL and --shape' "$bin/roofline" "$model" --shape llama3-8b
refuses 'below 2^63' "$bin/roofline" --shape llama3-8b --hardware h100 --ctx 100000000 --batch 1000000
refuses 'nothing of that name' "$bin/roofline" "$work/absent.gguf"

# Attention variants: what is missing is named and left out; of what is there all but the speed is exact.
refuses 'none was found' bash -c '"$0" "$1" "$2" 2>&1 > /dev/null | tail -1 >&2; exit "${PIPESTATUS[0]}"' "$bin/variants" "$work" "$work/long"
if [[ -f $shared/models/trained/story-cla.gguf ]]; then
  mkdir "$work/some" && ln -s "$(realpath "$shared")/models/trained/story-mla.gguf" "$work/some"
  "$bin/variants" "$work/some" "$work/long" --runs 1 --tokens 20 > "$work/out" 2> "$work/err" || complain 'variants of one model'
  [[ $(wc -l < "$work/err") == 3 && $(grep -c '^story-' "$work/out") == 1 ]] || complain 'variants must go on without missing models'
  grep -q 'story-mha.gguf is missing' "$work/err" || complain 'variants must name the missing models'
  "$bin/variants" "$shared/models/trained" "$shared/data/stories/eval.txt" --runs 1 --tokens 20 --svg "$work/chart.svg" > "$work/out" || complain variants
  gives 'story-mha   MHA              1082688      7.1745      2304 + 0      2304 + 0
story-gqa   GQA              1706240      6.2528      1024 + 0      1024 + 0
story-mla   MLA              1073664      7.6664       480 + 0       480 + 0
story-cla   CLA + local      1115776      7.4464   256 + 32768   256 + 32768' bash -c 'grep ^story- "$0" | sed "s/ *[0-9]*$//"' "$work/out"
  cmp "$work/chart.svg" "$(dirname "$model")/../variants.svg" || complain 'variants --svg differs from examples/variants.svg'
fi

# Conversions of a cache: 4 layers of 2 key/value heads of 32 values.
if [[ -x $bin/convert ]]; then
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
  # Without a method: from one kind of checkpoint to the other and back.
  refuses 'dequantize' "$bin/convert" "$model" "$work/hf"
  refuses 'must be a folder' "$bin/convert" "$model" "$work/text" gqa 3 # before the 3, which is wrong too
  refuses 'METHOD' "$bin/convert" "$model" "$work/hf" --text "$work/long"
  "$bin/convert" "$model" "$work/hf" --dequantize && "$bin/convert" "$work/hf" "$work/back.gguf" \
    && "$bin/inspect" "$work/back.gguf" > /dev/null || complain 'convert to a folder and back'
  if [[ -d $shared/models/stories260K ]]; then
    "$bin/convert" "$shared/models/stories260K" "$work/back.gguf" && "$bin/convert" "$work/back.gguf" "$work/hf2" \
      && diff -q "$work/hf2/tokenizer.json" "$shared/models/stories260K/tokenizer.json" > /dev/null \
      || complain 'convert a folder and back'
  fi
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
