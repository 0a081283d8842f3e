"""Trains small tokenizers on our own stories and records what other implementations make of hostile texts.

    pip install tokenizers==0.20.3 sentencepiece==0.2.1
    python3 record.py STORIES.txt          # writes the files beside this one; the tests only read them

`lines.json` holds the texts, `NAME.json` a tokenizer.json, `NAME.ids.json` the ids that the Python
package gave for them, `words.json` the words of every published pre-tokenizer expression.
"""
import base64
import json
import os
import random
import sys

import sentencepiece
import tokenizers
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

here = os.path.dirname(os.path.abspath(__file__))
stories = open(sys.argv[1], encoding="utf-8").read()[:120_000]
random.seed(5)

fragments = [
    "Once upon a time", " there was", "Lily", " 2024", "3.14159", "1234567", "don't", "I'LL", "we\u2019re", "'S", "'\u017f",
    " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "\u00a0", "\u3000", "\u2003", "\u180e", "\u0085", "\u2028",
    "->", "(x):\n", "...", "!?", "==", "++i;", "<s>", "</s>", "<|eot|>", "<tool>", " <tool> ", "x<tool>y", "<word>", "a<word>", " <word> ",
    "\u00e9", "e\u0301", "\u00c5", "A\u030a", "\u212b", "\ufb01", "\u1e9b\u0323", "\u0130", "\u03a3\u03a3", "stra\u00dfe", "\u01c5",
    "\u4f60\u597d", "\u4e16\u754c\u3002", "\u3053\u3093\u306b\u3061\u306f", "\ud55c\uad6d\uc5b4", "\u1112\u1161\u11ab", "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\u041f\u0440\u0438\u0432\u0435\u0442", "\u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac", "\u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627", "\u0661\u0662\u0663", "\u2167", "\u00bd", "\u00b2", "\u24b6",
    "\U0001f600", "\U0001f469\u200d\U0001f4bb", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f", "\u2581", "\u2581\u2581a", "\u0120", "\u00ad", "\u200b", "\ufeff", "\ufffd", "\0", "\x7f", "\x1c",
    "aaaaaaaa", "ABCabc", "camelCaseWord", "snake_case", "https://a.b/c?d=e&f", "{\"k\": [1, 2]}", "\U00020000", "\U0002b820", "##ing", "[UNK]", "~`$^|<>+=",
]
lines = ["", " ", "a", "Hello world", " Hello", "Hello ", "  two  spaces  ", "\n\n\n\n", "don'tx", "x  \n y", "a\tb"]
lines += fragments
while len(lines) < 230:
    lines.append("".join(random.choice(fragments) for _ in range(random.randint(2, 9))))

GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
LLAMA3 = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = QWEN2.replace(r"\p{L}+|\p{N}", r"[\p{L}\p{M}]+|\p{N}").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
GPT4O = (r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
         r"""|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
         r"""|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""")
TEKKEN = GPT4O.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace(r"\p{N}{1,3}", r"\p{N}")
CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
published = {
    "gpt-2": [GPT2], "llama-bpe": [LLAMA3], "qwen2": [QWEN2], "qwen35": [QWEN35], "gpt-4o": [GPT4O], "tekken": [TEKKEN],
    "starcoder": [r"\p{N}", GPT2], "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
                    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""],
    "bailingmoe": [r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"""],
    "seed-coder": [r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"""],
    "bloom": [r""" ?[^(\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"""],
}


def split(expression, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(expression), behavior, invert)


def write(name, value, indent=None):
    with open(os.path.join(here, name), "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=True, indent=indent, separators=(",", ":"))
        file.write("\n")


write("lines.json", lines)
words = {}
for name, expressions in published.items():
    step = pre_tokenizers.Sequence([split(e) for e in expressions])
    words[name] = [[len(w.encode()) for w, _ in step.pre_tokenize_str(line)] for line in lines]
write("words.json", words)

added = [AddedToken("<tool>", lstrip=True, rstrip=True, normalized=False),
         AddedToken("<word>", single_word=True, normalized=True), AddedToken("\u212b", normalized=True)]


def finish(name, tokenizer, merge_lines=False):
    text = json.loads(tokenizer.to_str())
    if merge_lines:
        text["model"]["merges"] = [" ".join(pair) for pair in text["model"]["merges"]]
    write(name + ".json", text)
    rows, plain, decoded = [], [], []
    for line in lines:
        rows.append(tokenizer.encode(line).ids)
        decoded.append(tokenizer.decode(rows[-1]))
    tokenizer.encode_special_tokens = True
    for line in lines:
        plain.append(tokenizer.encode(line, add_special_tokens=False).ids)
    write(name + ".ids.json", {"by": "tokenizers " + tokenizers.__version__, "ids": rows, "plain": plain, "decoded": decoded})


def byte_level(name, expression, normalizer=None, ignore_merges=False, **more):
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.Sequence([split(expression), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator([stories] + lines, trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<s>", "</s>", "<|eot|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_tokens(added)
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", t.token_to_id("<s>"))])
    finish(name, t, **more)


byte_level("llama3", LLAMA3, ignore_merges=True)
byte_level("qwen2", QWEN2, normalizers.NFC(), merge_lines=True)

falcon = Tokenizer(models.BPE())
falcon.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Strip(), normalizers.Lowercase()])
falcon.pre_tokenizer = pre_tokenizers.Sequence([
    pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=True),
    pre_tokenizers.Digits(False), split("[0-9][0-9][0-9]")])
falcon.decoder = decoders.ByteLevel()
falcon.train_from_iterator([stories], trainers.BpeTrainer(vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
finish("falcon", falcon)


def characters(name, normalizer, pre_tokenizer, decoder, **model):
    t = Tokenizer(models.BPE(unk_token="<unk>", **model))
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.train_from_iterator([stories], trainers.BpeTrainer(
        vocab_size=560, special_tokens=["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256 if model.get("byte_fallback") else 0)], show_progress=False))
    t.pre_tokenizer = pre_tokenizer
    raw = json.loads(t.to_str())  # byte pieces are pieces of the model, no special ones
    raw["added_tokens"] = [a for a in raw["added_tokens"] if not a["content"].startswith("<0x")]
    if pre_tokenizer is None:
        raw["pre_tokenizer"] = None
    t = Tokenizer.from_str(json.dumps(raw))
    t.decoder = decoder
    t.add_tokens(added)
    finish(name, t)


fallback = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
characters("llama2", normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]), None,
           decoders.Sequence(fallback + [decoders.Strip(" ", 1, 0)]), byte_fallback=True, fuse_unk=True)
characters("gemma", normalizers.Replace(" ", "\u2581"), None, decoders.Sequence(fallback), byte_fallback=True)
characters("metaspace", normalizers.NFKD(), pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
           decoders.Metaspace(prepend_scheme="first", split=False), fuse_unk=True)

bert = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=12))
bert.normalizer = normalizers.BertNormalizer()
bert.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
bert.decoder = decoders.WordPiece()
bert.train_from_iterator([stories] + lines, trainers.WordPieceTrainer(vocab_size=500, limit_alphabet=150, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False))
bert.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
finish("bert", bert)

# A character map of our own, in SentencePiece's format, and its two kinds of model.
rules = os.path.join(here, "rules.tsv")
with open(rules, "w") as file:
    for source, target in [("\ufb01", "fi"), ("e\u0301", "\u00e9"), ("\u00a0", " "), ("\u3000", " "), ("\t", " "), ("\n", " "), ("\u200b", ""), ("A", "a"), ("AB", "xy"), ("\u212b", "\u00c5")]:
        file.write(" ".join("%X" % ord(c) for c in source) + "\t" + " ".join("%X" % ord(c) for c in target) + "\n")
sample = os.path.join(here, "sample.txt")
with open(sample, "w") as file:
    file.write(stories)
for kind, options in [("unigram", dict(normalization_rule_tsv=rules, byte_fallback=False)),
                      ("bpe", dict(normalization_rule_name="identity", byte_fallback=True, remove_extra_whitespaces=False)),
                      ("bytes", dict(model_type="unigram", normalization_rule_tsv=rules, byte_fallback=True, add_dummy_prefix=False))]:
    prefix = os.path.join(here, "sentencepiece-" + kind)
    sentencepiece.SentencePieceTrainer.train(**{**dict(input=sample, model_prefix=prefix, vocab_size=560, model_type=kind, minloglevel=2,
                                             character_coverage=0.999, hard_vocab_limit=False, user_defined_symbols=["<tool>"]), **options})
    os.remove(prefix + ".vocab")
    sp = sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")
    write("sentencepiece-" + kind + ".ids.json", {"by": "sentencepiece " + sentencepiece.__version__, "ids": [sp.encode(line) for line in lines],
                                                  "decoded": [sp.decode(sp.encode(line)) for line in lines]})
    if kind == "unigram":
        from sentencepiece import sentencepiece_model_pb2 as pb
        proto = pb.ModelProto()
        proto.ParseFromString(open(prefix + ".model", "rb").read())
        t = Tokenizer(models.Unigram([(p.piece, p.score) for p in proto.pieces], unk_id=0, byte_fallback=False))
        t.normalizer = normalizers.Sequence([normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap), normalizers.Replace(Regex(" {2,}"), " ")])
        t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
        t.decoder = decoders.Metaspace()
        t.add_special_tokens([AddedToken("<unk>"), AddedToken("<s>"), AddedToken("</s>")])
        t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
        finish("unigram", t)
os.remove(rules)
os.remove(sample)
