#pragma once
// What changes while a Decoder runs: caches, scratch, lengths of the sequences.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../attn/mask.hpp"
#include "decoder.hpp"
#include "saved_sequence.hpp"
#include "sequence_table.hpp"

namespace tenon::inline TENON_ABI {

// Satisfies ModelSession. One thread drives it; it keeps the model's weights alive.
template <class D>
class DecoderSession {
  using Kinds = typename D::kinds;
  using Formats = typename D::formats;

 public:
  DecoderSession(D model, const Limits& limits, const SessionOptions& options)
      : DecoderSession(std::move(model), options, limits) {
    if (bound().outline) {
      fail<RequestError>(
          "a model must have its weights to open a session, this one was bound with "
          "BindOptions::outline to learn its memory; bind it without");
    }
    cache_bytes_ = model_.cache_bytes(limits, options.cache);
    make_stores(limits, options.cache, every_store);
    work_ = std::make_unique<Workspace>(measure());
  }
  // Bytes of scratch that a session would hold; of an outline too.
  static std::size_t workspace_bytes(const D& model, const Limits& limits, SessionOptions options) {
    ThreadCount threads(options.executor != nullptr ? options.executor->threads()
                                                    : options.threads);
    options.executor = &threads;
    DecoderSession session(model, options, limits);
    session.make_stores({.context = 1, .step_tokens = 1}, options.cache, every_store);
    return session.measure();
  }

 private:
  static constexpr auto every_store =
      std::make_index_sequence<static_cast<std::size_t>(Kinds::stores)>{};

  // Without stores and scratch.
  DecoderSession(D model, const SessionOptions& options, const Limits& limits)
      : model_(std::move(model)),
        table_(check(limits), model_.vocab(), Kinds::trees),
        activations_(options.activations),
        executor_(options.executor) {
    if (executor_ == nullptr) {
      team_ = std::make_unique<ThreadTeam>(options.threads);
      executor_ = team_.get();
    }
    if (executor_->threads() < 1) {
      fail<RequestError>("an Executor must have at least one thread, this one has ",
                         executor_->threads());
    }
    isa_ = choose_isa();
    angles_.reserve(bound().rotaries.size());
  }

 public:
  int vocab() const { return model_.vocab(); }
  const Limits& limits() const { return table_.limits(); }
  int threads() const { return executor().threads(); }
  Isa isa() const { return isa_; }
  // Bytes of caches and of scratch, constant from here on.
  std::size_t cache_bytes() const { return cache_bytes_; }
  std::size_t workspace_bytes() const { return work_->bytes(); }

  int length(SeqId seq) const { return table_.length(seq); }
  SeqId open() { return table_.open(0); }
  // Only where every cache of the model can share or copy its rows.
  static constexpr bool forks = Kinds::forks;
  SeqId fork(SeqId seq) {
    static_assert(
        forks,
        "tenon: a cache of this model cannot fork (a Ring overwrites the rows that a copy "
        "would share); use Contiguous or Paged");
    const int rows = length(seq);
    const SeqId copy = table_.vacant();
    each_store([&](auto& store) { store.fork(seq, copy, rows); });
    return table_.open(rows);
  }
  void truncate(SeqId seq, int rows) {
    const int now = length(seq);
    if (rows < 0 || rows > now) {
      fail<RequestError>("truncate must keep 0 to ", now, " rows of sequence ", index(seq),
                         ", it was asked to keep ", rows);
    }
    each_store([&](const auto& store) {
      if (!store.recalls(seq, rows)) forgotten(seq, now, rows);
    });
    each_store([&](auto& store) { store.truncate(seq, now, rows); });
    table_.resize(seq, rows);
  }
  // Of the tokens that the last step gave to `seq`, keeps those in `path` and forgets the others: a
  // chain's first ones, or one path of a token tree from its root on. The logits of what follows
  // are those of a sequence that was only given these tokens, for a chain bit by bit.
  void accept(SeqId seq, std::span<const int> path) {
    const SeqStep step = table_.last_step(seq);
    check_path(step, path);
    int kept = 0;  // those that lie where they belong already
    while (kept < static_cast<int>(path.size()) && path[static_cast<std::size_t>(kept)] == kept) {
      ++kept;
    }
    if (kept < static_cast<int>(path.size())) move_path(step, path);
    truncate(seq, step.base + static_cast<int>(path.size()));
  }
  // Drops rows [keep, keep + drop) of a sequence; what follows moves down, its keys turned to their
  // places there (context shift). Cached values still know of the dropped rows.
  static constexpr bool shifts = Kinds::shifts;
  void shift(SeqId seq, int keep, int drop) {
    static_assert(shifts,
                  "tenon: a cache of this model cannot shift (a Ring has no rows to move in); use "
                  "Contiguous or Paged");
    const int rows = length(seq);
    if (keep < 0 || drop < 0 || keep > rows || drop > rows - keep) {
      fail<RequestError>("shift must drop rows within the ", rows, " of sequence ", index(seq),
                         ", it was asked to drop ", drop, " after ", keep);
    }
    if (drop == 0) return;
    const int moved = rows - keep - drop;
    KeyTurn turn = key_turn(-drop);  // allocates; what follows does not
    unshare(seq, keep, keep + moved);
    each_store([&](auto& store) { store.move_rows(seq, keep + drop, keep, moved); });
    turn_keys(seq, {keep, keep + moved}, turn);
    truncate(seq, keep + moved);
  }
  void close(SeqId seq) {
    table_.close(seq);
    each_store([&](auto& store) { store.release(seq); });
  }

  // A sequence's rows as bytes, which a session of the same model and element formats, whatever its
  // cache layouts, makes a sequence again. LoadError, RequestError or CapacityError say why not;
  // nothing is then changed.
  std::vector<std::byte> save(SeqId seq) const {
    return save_sequence<Kinds>(bound(), stores_, seq, length(seq));
  }
  SeqId restore(std::span<const std::byte> saved) {
    const SeqId seq = table_.vacant();
    return table_.open(restore_sequence<Kinds>(bound(), stores_, seq, limits().context, saved));
  }

  // Appends the batch's tokens to their sequences; logits [want, vocab] are those that follow the
  // wanted tokens. RequestError names what is wrong with a batch, CapacityError a full sequence,
  // Cancelled a stop; the sequences are then as before. Allocates nothing.
  void forward(const Batch& batch, MatView<float> logits, std::stop_token stop = {}) {
    const Step step = table_.admit(batch, logits);
    for (const SeqStep& seq : step.seqs) check_complete(seq);
    Cpu cpu(isa_, activations_, executor(), *work_);
    try {
      reserve(step);
      run(cpu, step, batch.tokens, batch.want, logits, stop);
    } catch (...) {
      for (const SeqStep& seq : step.seqs) {
        each_store([&](auto& store) { store.truncate(seq.seq, seq.base + seq.count, seq.base); });
      }
      throw;
    }
    table_.commit(step);
  }

 private:
  const typename D::Bound& bound() const { return *model_.bound(); }
  Executor& executor() const { return *executor_; }

  static void check_path(const SeqStep& step, std::span<const int> path) {
    for (std::size_t i = 0; i < path.size(); ++i) {
      const int node = path[i], before = i == 0 ? -1 : path[i - 1];
      bool follows = node >= 0 && node < step.count;
      if (follows && step.ancestors == nullptr) follows = node == static_cast<int>(i);
      if (follows && step.ancestors != nullptr) {
        const std::uint64_t* seen = step.ancestors + node * ((step.count + 63) / 64);
        follows = step.depths[node] == static_cast<int>(i) &&
                  (before < 0 || (seen[before / 64] >> (before % 64) & 1) != 0);
      }
      if (!follows) {
        fail<RequestError>("accept takes one path from the root on, token ", node, " at place ", i,
                           " does not continue it; the step gave sequence ", index(step.seq), " ",
                           step.count, " tokens");
      }
    }
  }
  // Moves the rows of a path of the tree together; nodes lie behind their parents, so that no row
  // is written before it was read.
  void move_path(const SeqStep& step, std::span<const int> path) {
    if constexpr (Kinds::shifts) {
      const auto n = static_cast<int>(path.size());
      unshare(step.seq, step.base, step.base + n);
      for (int i = 0; i < n; ++i) {
        const int from = step.base + path[static_cast<std::size_t>(i)];
        each_store([&](auto& store) { store.move_rows(step.seq, from, step.base + i, 1); });
      }
    } else {
      fail<RequestError>(
          "accept of a branch moves rows, which a Ring of this model cannot; accept a chain, or "
          "compose the model with Contiguous or Paged");
    }
  }
  // CapacityError when a store has not the pages; copies that others made by then hold the same
  // rows.
  void unshare(SeqId seq, int from, int rows) {
    each_store([&](auto& store) {
      if (!store.unshare(seq, from, rows)) pool_full({seq, 0, rows - from, length(seq)});
    });
  }
  // The angles that turn keys by some positions, and scratch for a row.
  struct KeyTurn {
    std::vector<RotaryAngles> angles;
    std::vector<std::vector<float>> memory;
    std::vector<float> row;
  };
  KeyTurn key_turn(int delta) const {
    KeyTurn turn;
    for (const RotaryFrequencies& frequencies : bound().rotaries) {
      const Dim n = frequencies.rope_dim();
      float* at = turn.memory.emplace_back(static_cast<std::size_t>(2 * n)).data();
      turn.angles.push_back({frequencies.pairing, n, matrix(at, 1, n), matrix(at + n, 1, n)});
      fill_shift_angles(frequencies, delta, turn.angles.back());
    }
    Dim widest = 0;
    for (const auto& slots : bound().slots) {
      for (const RowSpec& rows : slots) widest = (std::max)(widest, rows.widths[0]);
    }
    turn.row.resize(static_cast<std::size_t>(widest));
    return turn;
  }
  // Turns the keys of these rows, in every layer that owns rows.
  void turn_keys(SeqId seq, Rows rows, KeyTurn& turn) {
    for (const typename D::Layer& layer : bound().layers) {
      if (!layer.slot.owns) continue;
      Kinds::visit(layer.kind, [&](auto k) {
        using B = typename Kinds::template At<k>;
        auto& store = *std::get<static_cast<std::size_t>(Kinds::template store_of<k>)>(stores_);
        const auto& weights = std::get<k>(bound().weights)[layer.weights].mixer;
        B::Mixer::turn_keys(row_ops(isa_), weights, store, layer.slot.index, seq, rows, turn.angles,
                            turn.row);
      });
    }
  }
  void reserve(const Step& step) {
    for (const SeqStep& seq : step.seqs) {
      each_store([&](auto& store) {
        if (!store.reserve(seq.seq, seq.base, seq.count)) pool_full(seq);
      });
    }
  }
  [[noreturn]] void pool_full(const SeqStep& seq) const {
    fail<CapacityError>("the cache must have room for ", seq.count, " more rows of sequence ",
                        index(seq.seq), ", which holds ", seq.base,
                        ", and its pool is used up; close or truncate a sequence, or open the "
                        "session with a larger Limits::pool_rows");
  }
  // Masks that look ahead need the rows that they look at in the same step.
  void check_complete(const SeqStep& seq) const {
    for (const typename D::Layer& layer : bound().layers) {
      Kinds::visit(layer.kind, [&](auto k) {
        using Mixer = typename Kinds::template At<k>::Mixer;
        if constexpr (requires { requires Mixer::MaskType::looks_ahead; }) {
          const auto& weights = std::get<k>(bound().weights)[layer.weights];
          if (!Mixer::complete(weights.mixer.config, seq.base, seq.count)) {
            fail<RequestError>(
                "sequence ", index(seq.seq),
                " must be given whole in one batch (or block by block), because a mask "
                "of this model looks ahead; ",
                seq.base, " rows are there and ", seq.count,
                " more were given; truncate it to where its last block starts");
          }
        }
      });
    }
  }
  void run(Cpu& cpu, const Step& step, std::span<const Token> tokens, std::span<const int> want,
           MatView<float> logits, const std::stop_token& stop) {
    const auto frame = cpu.workspace().frame();
    const Dim width = model_.width();
    const auto x = cpu.take_matrix(step.tokens, width);
    LayerStep layer_step{step, {}, {}, 0};
    layer_step.layer_inputs = D::input::forward(cpu, bound().input, tokens, x);
    turn(cpu, step);
    layer_step.angles = angles_;
    for (const typename D::Layer& layer : bound().layers) {
      if (stop.stop_requested()) cancelled();
      Kinds::visit(layer.kind, [&](auto k) {
        using B = typename Kinds::template At<k>;
        auto& store = *std::get<static_cast<std::size_t>(Kinds::template store_of<k>)>(stores_);
        B::forward(cpu, std::get<k>(bound().weights)[layer.weights], store, layer.slot, layer_step,
                   x);
      });
      ++layer_step.layer;
    }
    if (stop.stop_requested()) cancelled();
    const auto wanted = static_cast<Dim>(want.size());
    if (wanted == 0) return;
    const auto last = cpu.take_matrix(wanted, width);
    for (Dim i = 0; i < wanted && !cpu.measuring(); ++i) {
      std::copy_n(x.row(want[static_cast<std::size_t>(i)]), width, last.row(i));
    }
    D::Norm::forward(cpu, bound().norm, last, last);
    const CountAs counted(CostPart::unembedding);
    cpu.linear<Formats>(last, {{&bound().output(), logits}});
    if (const float cap = bound().logit_cap; cap > 0) {
      cpu.each_row(wanted, logits.extent(1) * 16,
                   [&](Dim i) { cpu.rows().soft_cap(logits.row(i), logits.extent(1), cap); });
    }
  }
  // Sines and cosines of the step's positions, for every distinct rotation of the model.
  void turn(Cpu& cpu, const Step& step) {
    angles_.clear();
    for (const RotaryFrequencies& frequencies : bound().rotaries) {
      RotaryAngles& angles = angles_.emplace_back();
      angles.pairing = frequencies.pairing;
      angles.rope_dim = frequencies.rope_dim();
      angles.cosines = cpu.take_matrix(step.tokens, angles.rope_dim);
      angles.sines = cpu.take_matrix(step.tokens, angles.rope_dim);
      if (!cpu.measuring()) fill_angles(frequencies, step.positions, angles);
    }
  }
  [[noreturn]] void forgotten(SeqId seq, int now, int rows) const {
    fail<RequestError>("sequence ", index(seq),
                       " must still have the rows that its next token sees; of ", now,
                       " rows it cannot go back to ", rows,
                       ", a ring keeps Limits::rollback = ", limits().rollback,
                       " rows beyond its window; open the session with a larger one");
  }
  [[noreturn]] static void cancelled() {
    fail<Cancelled>(
        "the step was stopped by its stop token before it was done; the sequences are as before "
        "it");
  }

  // Bytes of scratch that the largest step takes: the step itself, run without memory or work.
  std::size_t measure() {
    Workspace unbacked;
    Cpu cpu(isa_, activations_, executor(), unbacked);
    const std::vector<Token> tokens(static_cast<std::size_t>(limits().step_tokens));
    const std::vector<int> want(tokens.size());
    const SeqStep whole{SeqId{0}, 0, limits().step_tokens, 0, nullptr, nullptr};
    const Step step{{&whole, 1}, {}, limits().step_tokens};
    run(cpu, step, tokens, want, matrix<float>(nullptr, limits().step_tokens, vocab()), {});
    return unbacked.peak();
  }

  template <std::size_t... I>
  void make_stores(const Limits& limits, std::string_view element, std::index_sequence<I...>) {
    ((std::get<I>(stores_) = std::make_unique<std::tuple_element_t<I, typename Kinds::Stores>>(
          bound().slots[I], limits,
          element_tags<std::tuple_element_t<I, typename Kinds::Stores>>(element))),
     ...);
  }
  template <class Fn>
  void each_store(Fn&& fn) {
    std::apply([&](auto&... store) { (fn(*store), ...); }, stores_);
  }

  D model_;
  SequenceTable table_;
  std::size_t cache_bytes_ = 0;
  Activations activations_;
  Executor* executor_;
  std::unique_ptr<ThreadTeam> team_;
  Isa isa_ = Isa::scalar;
  typename Kinds::OwnedStores stores_;
  std::unique_ptr<Workspace> work_;
  std::vector<RotaryAngles> angles_;
};

}  // namespace tenon::inline TENON_ABI
