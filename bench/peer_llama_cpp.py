"""Times llama.cpp as bench_model times tenon, and prints JSON of the same form. Run by compare.py,
with the Python of its virtual environment, the package's source on the path and LLAMA_CPP_LIB_PATH
set.

The C functions are called directly: one llama_decode a step, logits of the last token of a prompt
and of every sequence of a decode step, nothing drawn. What Python adds to a step is timed by the
same loop around a C function that does nothing, and printed.
"""

import argparse
import ctypes
import json
import statistics
import sys
import time
import types
from importlib.machinery import PathFinder

# The declarations alone: what the package itself imports needs other packages.
package = types.ModuleType("llama_cpp")
package.__path__ = PathFinder.find_spec("llama_cpp").submodule_search_locations
sys.modules["llama_cpp"] = package
import llama_cpp.llama_cpp as llama  # noqa: E402

UBATCH = 512  # tokens that llama.cpp computes at once; bench_model's steps are as large


def numbers(text):
    return [int(part) for part in text.split(",")]


@llama.llama_log_callback
def silent(level, text, data):
    del level, text, data


class Sequences:
    """A context for `count` sequences of `rows` tokens, and a batch to fill over and over."""

    def __init__(self, model, threads, count, rows, cache_type):
        rows = (rows + 255) // 256 * 256
        self.capacity = max(rows, UBATCH, count)
        params = llama.llama_context_default_params()
        params.n_ctx = rows * count
        params.n_batch = self.capacity
        params.n_ubatch = UBATCH
        params.n_seq_max = count
        params.n_threads = params.n_threads_batch = threads
        params.type_k = params.type_v = cache_type
        params.no_perf = True
        self.context = llama.llama_init_from_model(model, params)
        if not self.context:
            sys.exit(f"llama.cpp could not make a context of {count} x {rows} tokens")
        self.memory = llama.llama_get_memory(self.context)
        self.batch = llama.llama_batch_init(self.capacity, 0, 1)
        # The same call with nothing in it: ignores the batch it is given.
        nothing = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, llama.llama_batch)
        self.nothing = nothing(("llama_n_ctx", llama._lib))
        self.call = llama.llama_decode

    def close(self):
        llama.llama_batch_free(self.batch)
        llama.llama_free(self.context)

    def fill_prompt(self, tokens, first):
        self.batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            self.batch.token[i] = token
            self.batch.pos[i] = first + i
            self.batch.n_seq_id[i] = 1
            self.batch.seq_id[i][0] = 0
            self.batch.logits[i] = i + 1 == len(tokens)

    def fill_step_frame(self, count):
        self.batch.n_tokens = count
        for i in range(count):
            self.batch.n_seq_id[i] = 1
            self.batch.seq_id[i][0] = i
            self.batch.logits[i] = 1

    def run(self):
        if self.call(self.context, self.batch) != 0:
            sys.exit("llama_decode failed")

    def steps(self, tokens, depth):
        """Decodes tokens[step][sequence]."""
        batch, context, call = self.batch, self.context, self.call
        token, pos = batch.token, batch.pos
        failed = 0
        for step, row in enumerate(tokens):
            for i, each in enumerate(row):
                token[i] = each
                pos[i] = depth + step
            failed |= call(context, batch)
        if failed != 0 and call is llama.llama_decode:
            sys.exit("llama_decode failed")


def timed(runs, work, reset):
    seconds = []
    for i in range(runs + 1):
        start = time.perf_counter()
        work()
        taken = time.perf_counter() - start
        if i > 0:
            seconds.append(taken)
        reset()
    return seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("-p", type=numbers, default=[128, 512])
    parser.add_argument("-n", type=int, default=32)
    parser.add_argument("-b", type=numbers, default=[1])
    parser.add_argument("-t", type=numbers, default=[1])
    parser.add_argument("-d", type=numbers, default=[0])
    parser.add_argument("-r", type=int, default=5)
    parser.add_argument("--cache", default="f16", choices=["f16", "f32", "q8_0"])
    parser.add_argument("--version", default="unknown", help="what to call this version")
    options = parser.parse_args()

    llama.llama_log_set(silent, ctypes.c_void_p(0))
    llama.llama_backend_init()
    params = llama.llama_model_default_params()
    params.n_gpu_layers = 0
    model = llama.llama_model_load_from_file(options.model.encode(), params)
    if not model:
        sys.exit(f"llama.cpp could not load {options.model}")
    words = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
    cache_type = {"f16": 1, "f32": 0, "q8_0": 8}[options.cache]

    def text(sequence, first, count):
        state = 88172645463325252 + sequence * 1000003 + first
        ids = []
        for _ in range(count):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            ids.append((state >> 33) % words)
        return ids

    results = []

    def add(test, threads, sequences, depth, tokens, seconds, per_run):
        rates = [per_run / s for s in seconds]
        results.append(
            dict(
                test=test,
                threads=threads,
                sequences=sequences,
                depth=depth,
                tokens=tokens,
                tokens_per_second=statistics.median(rates),
                runs=rates,
            )
        )

    overhead = 0.0
    for threads in options.t:
        place = Sequences(model, threads, 1, max(options.p), cache_type)
        for length in options.p:
            place.fill_prompt(text(0, 0, length), 0)
            seconds = timed(
                options.r, place.run, lambda: llama.llama_memory_seq_rm(place.memory, 0, 0, -1)
            )
            add("prefill", threads, 1, 0, length, seconds, length)
        place.close()
        for count in options.b if options.n > 0 else []:
            place = Sequences(model, threads, count, max(options.d) + options.n, cache_type)
            filled = 0
            for depth in sorted(set(options.d)):
                if depth > filled:
                    place.fill_prompt(text(0, filled, depth - filled), filled)
                    place.run()
                    for other in range(1, count):
                        llama.llama_memory_seq_rm(place.memory, other, -1, -1)
                        llama.llama_memory_seq_cp(place.memory, 0, other, -1, -1)
                filled = depth
                columns = [text(i, depth, options.n) for i in range(count)]
                rows = list(zip(*columns))
                place.fill_step_frame(count)

                def reset():
                    for i in range(count):
                        llama.llama_memory_seq_rm(place.memory, i, depth, -1)

                seconds = timed(options.r, lambda: place.steps(rows, depth), reset)
                add("decode", threads, count, depth, options.n, seconds, options.n * count)
                decode, place.call = place.call, place.nothing
                spent = timed(options.r, lambda: place.steps(rows, depth), lambda: None)
                place.call = decode
                overhead = max(overhead, statistics.median(spent) / options.n)
            place.close()

    print(
        json.dumps(
            dict(
                program="llama.cpp",
                version=options.version,
                system=llama.llama_print_system_info().decode(),
                cache=options.cache,
                python_seconds_per_step=overhead,
                results=results,
            )
        )
    )


main()
