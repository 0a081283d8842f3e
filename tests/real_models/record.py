#!/usr/bin/env python3
"""Records what llama.cpp makes of a real model, as expectations for check.sh:

  python3 tests/real_models/record.py PEERS MODEL.gguf FLOATS.gguf TEXT > expected/NAME.json

PEERS is the folder in which bench/compare.py built llama.cpp (build/peers; numpy must be in its
virtual environment). FLOATS is the same model with its matrices decoded (quantize MODEL FLOATS f32
--pure --requantize): on that llama.cpp computes in floats, so greedy ids are a fair comparison.
"""

import json
import os
import subprocess
import sys
import types
from importlib.machinery import PathFinder

if "LLAMA_CPP_LIB_PATH" not in os.environ:  # once more with the Python that has the package
    peers = os.path.abspath(sys.argv[1])
    env = dict(os.environ, PYTHONPATH=f"{peers}/source", LLAMA_CPP_LIB_PATH=f"{peers}/build/bin")
    sys.exit(subprocess.call([f"{peers}/venv/bin/python", *sys.argv], env=env))

import numpy as np

package = types.ModuleType("llama_cpp")
package.__path__ = PathFinder.find_spec("llama_cpp").submodule_search_locations
sys.modules["llama_cpp"] = package
import llama_cpp.llama_cpp as llama  # noqa: E402

PROMPTS = [
    "Once upon a time, in a village of 123 people",
    "The three most important rules of a good carpenter are",
    "def fibonacci(n):\n    if n < 2:\n",
    "Zwei Dinge sind unendlich: das Universum und",
]
CHAT = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n<|im_start|>user\nWhat is the capital of France?<|im_end|>\n"
    "<|im_start|>assistant\n"
)
WINDOW, WINDOWS, GREEDY = 255, 8, 32


class Model:
    def __init__(self, path):
        params = llama.llama_model_default_params()
        self.model = llama.llama_load_model_from_file(path.encode(), params)
        params = llama.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = 512
        params.type_k = params.type_v = 0  # F32
        params.flash_attn_type = 0
        self.context = llama.llama_init_from_model(self.model, params)
        self.vocab = llama.llama_model_get_vocab(self.model)
        self.rows = 0

    def ids(self, text, special=False):
        data = text.encode()
        out = (llama.llama_token * (len(data) + 16))()
        count = llama.llama_tokenize(
            self.vocab, data, len(data), out, len(data) + 16, False, special
        )
        return list(out[:count])

    def logits(self, ids, more=False):
        if not more:
            llama.llama_memory_clear(llama.llama_get_memory(self.context), True)
            self.rows = 0
        batch = llama.llama_batch_init(len(ids), 0, 1)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i] = token, self.rows + i
            batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = 1, 0, 1
        batch.n_tokens = len(ids)
        assert llama.llama_decode(self.context, batch) == 0
        self.rows += len(ids)
        shape = (len(ids), llama.llama_vocab_n_tokens(self.vocab))
        out = np.ctypeslib.as_array(llama.llama_get_logits(self.context), shape=shape).copy()
        llama.llama_batch_free(batch)
        return out

    def greedy(self, ids):
        out, gap = [], float("inf")
        row = self.logits(ids)[-1]
        for _ in range(GREEDY):
            out.append(int(row.argmax()))
            second, first = np.partition(row, -2)[-2:]
            gap = min(gap, float(first - second))
            row = self.logits(out[-1:], more=True)[-1]
        return out, gap


@llama.llama_log_callback
def silent(level, text, data):
    del level, text, data


llama.llama_log_set(silent, None)
_, _, path, floats, text_path = sys.argv
model, exact = Model(path), Model(floats)
bos = llama.llama_vocab_bos(exact.vocab)
prompts = []
for text in PROMPTS + ([CHAT] if "Smol" in path else []):
    ids = exact.ids(text, special=True)
    fed = ids if text == CHAT else [bos, *ids]
    greedy, gap = exact.greedy(fed)
    prompts.append(dict(text=text, ids=ids, fed=fed, greedy=greedy, smallest_gap=round(gap, 5)))
ids = exact.ids(open(text_path).read()[:16384])[: WINDOW * WINDOWS]
perplexity = {}
for name, engine in (("f32", exact), ("native", model)):
    nll = []
    for at in range(0, len(ids), WINDOW):
        window = ids[at : at + WINDOW]
        rows = engine.logits([bos, *window[:-1]]).astype(np.float64)
        rows -= rows.max(-1, keepdims=True)
        rows -= np.log(np.exp(rows).sum(-1, keepdims=True))
        nll.extend(-rows[np.arange(len(window)), window])
    perplexity[name] = round(float(np.exp(np.mean(nll))), 4)
json.dump(
    dict(
        engine="llama.cpp of llama-cpp-python 0.3.36, one run",
        text=dict(ids=len(ids), window=WINDOW, perplexity=perplexity),
        prompts=prompts,
    ),
    sys.stdout,
    indent=1,
)
print()
