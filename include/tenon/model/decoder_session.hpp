#pragma once
// What changes while a Decoder runs: caches, scratch, lengths of the sequences.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
    cache_bytes_ = model_.cache_bytes(limits, options.cache);
    make_stores(options.cache, std::make_index_sequence<static_cast<std::size_t>(Kinds::stores)>{});
    work_ = std::make_unique<Workspace>(measure());
  }

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
    for (const SeqStep& seq : step.seqs) table_.resize(seq.seq, seq.base + seq.count);
  }

 private:
  const typename D::Bound& bound() const { return *model_.bound(); }
  Executor& executor() const { return *executor_; }

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
  void make_stores(std::string_view element, std::index_sequence<I...>) {
    ((std::get<I>(stores_) = std::make_unique<std::tuple_element_t<I, typename Kinds::Stores>>(
          bound().slots[I], limits(),
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
