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

namespace tenon::inline TENON_ABI {

// Satisfies ModelSession. One thread drives it; it keeps the model's weights alive.
template <class D>
class DecoderSession {
  using Kinds = typename D::kinds;
  using Formats = typename D::formats;

 public:
  DecoderSession(D model, const Limits& limits, const SessionOptions& options)
      : model_(std::move(model)),
        limits_(check(limits)),
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
    const auto seqs = static_cast<std::size_t>(limits_.seqs);
    const auto tokens = static_cast<std::size_t>(limits_.step_tokens);
    lengths_.assign(seqs, closed);
    stamps_.assign(seqs, 0);
    seqs_.reserve(seqs);
    positions_.reserve(tokens);
    angles_.reserve(bound().rotaries.size());
    cache_bytes_ = model_.cache_bytes(limits_, options.cache);
    make_stores(options.cache, std::make_index_sequence<static_cast<std::size_t>(Kinds::stores)>{});
    work_ = std::make_unique<Workspace>(measure());
  }

  int vocab() const { return model_.vocab(); }
  const Limits& limits() const { return limits_; }
  int threads() const { return executor().threads(); }
  Isa isa() const { return isa_; }
  // Bytes of caches and of scratch, constant from here on.
  std::size_t cache_bytes() const { return cache_bytes_; }
  std::size_t workspace_bytes() const { return work_->bytes(); }

  int length(SeqId seq) const { return lengths_[checked(seq)]; }
  SeqId open() {
    const SeqId seq = vacant();
    lengths_[index(seq)] = 0;
    return seq;
  }
  // Only where every cache of the model can share or copy its rows.
  static constexpr bool forks = Kinds::forks;
  SeqId fork(SeqId seq) {
    static_assert(
        forks,
        "tenon: a cache of this model cannot fork (a Ring overwrites the rows that a copy "
        "would share); use Contiguous or Paged");
    const int rows = length(seq);
    const SeqId copy = vacant();
    each_store([&](auto& store) { store.fork(seq, copy, rows); });
    lengths_[index(copy)] = rows;
    return copy;
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
    lengths_[index(seq)] = rows;
  }
  void close(SeqId seq) {
    lengths_[checked(seq)] = closed;
    each_store([&](auto& store) { store.release(seq); });
  }

  // A sequence's rows as bytes, which a session of the same model and element formats, whatever its
  // cache layouts, makes a sequence again. LoadError, RequestError or CapacityError say why not;
  // nothing is then changed.
  std::vector<std::byte> save(SeqId seq) const {
    return save_sequence<Kinds>(bound(), stores_, seq, length(seq));
  }
  SeqId restore(std::span<const std::byte> saved) {
    const SeqId seq = vacant();
    lengths_[index(seq)] = restore_sequence<Kinds>(bound(), stores_, seq, limits_.context, saved);
    return seq;
  }

  // Appends the batch's tokens to their sequences; logits [want, vocab] are those that follow the
  // wanted tokens. RequestError names what is wrong with a batch, CapacityError a full sequence,
  // Cancelled a stop; the sequences are then as before. Allocates nothing.
  void forward(const Batch& batch, MatView<float> logits, std::stop_token stop = {}) {
    admit(batch, logits);
    const Step step{seqs_, positions_, static_cast<int>(batch.tokens.size())};
    Cpu cpu(isa_, activations_, executor(), *work_);
    try {
      reserve();
      run(cpu, step, batch.tokens, batch.want, logits, stop);
    } catch (...) {
      for (const SeqStep& seq : seqs_) {
        each_store([&](auto& store) { store.truncate(seq.seq, seq.base + seq.count, seq.base); });
      }
      throw;
    }
    for (const SeqStep& seq : seqs_) lengths_[index(seq.seq)] = seq.base + seq.count;
  }

 private:
  static constexpr int closed = -1;

  SeqId vacant() const {
    for (std::size_t i = 0; i < lengths_.size(); ++i) {
      if (lengths_[i] == closed) return static_cast<SeqId>(i);
    }
    fail<CapacityError>("a session can hold Limits::seqs = ", limits_.seqs,
                        " sequences and all are open; close one or open the session with more");
  }
  const typename D::Bound& bound() const { return *model_.bound(); }
  Executor& executor() const { return *executor_; }

  std::size_t checked(SeqId seq) const {
    const std::size_t i = index(seq);
    if (i >= lengths_.size() || lengths_[i] == closed) {
      fail<RequestError>("a sequence must come from open() or fork() and not be closed; ",
                         static_cast<std::int32_t>(seq), " is not open in this session");
    }
    return i;
  }

  // Validates a batch against this session and writes it down as seqs_ and positions_.
  void admit(const Batch& batch, MatView<const float> logits) {
    const auto tokens = static_cast<Dim>(batch.tokens.size());
    if (batch.seqs.size() != batch.counts.size()) {
      fail<RequestError>("Batch::counts must have one entry per sequence, there are ",
                         batch.seqs.size(), " sequences and ", batch.counts.size(), " counts");
    }
    if (tokens < 1 || tokens > limits_.step_tokens) {
      fail<RequestError>("a batch must have 1 to Limits::step_tokens = ", limits_.step_tokens,
                         " tokens, it has ", tokens, "; feed longer prompts in chunks");
    }
    if (!batch.positions.empty() && static_cast<Dim>(batch.positions.size()) != tokens) {
      fail<RequestError>("Batch::positions must be empty or have one entry per token, there are ",
                         batch.positions.size(), " positions and ", tokens, " tokens");
    }
    if (!batch.parents.empty()) {
      fail<RequestError>(
          "Batch::parents must be empty: no mask of this model type understands token trees");
    }
    for (const Token token : batch.tokens) {
      if (token < 0 || token >= vocab()) {
        fail<RequestError>("a token id must be 0 to ", vocab() - 1, ", the batch holds ", token,
                           "; was it made by another model's tokenizer?");
      }
    }
    for (const int want : batch.want) {
      if (want < 0 || want >= tokens) {
        fail<RequestError>("Batch::want must index its ", tokens, " tokens, it holds ", want);
      }
    }
    const auto wanted = static_cast<Dim>(batch.want.size());
    if (wanted > tokens) {
      fail<RequestError>("Batch::want must have at most one entry per token, there are ", wanted,
                         " wants and ", tokens, " tokens");
    }
    if (wanted > 0 && (logits.extent(0) != wanted || logits.extent(1) != vocab())) {
      fail<RequestError>("logits must be [want, vocab] = [", wanted, ", ", vocab(), "], they are [",
                         logits.extent(0), ", ", logits.extent(1), "]");
    }
    admit_sequences(batch, static_cast<int>(tokens));
    for (const int position : positions_) {
      if (position < 0)
        fail<RequestError>("a position must not be negative, the batch holds ", position);
    }
  }
  void admit_sequences(const Batch& batch, int tokens) {
    seqs_.clear();
    positions_.clear();
    ++batches_;
    int first = 0;
    for (std::size_t i = 0; i < batch.seqs.size(); ++i) {
      const SeqId seq = batch.seqs[i];
      const int count = batch.counts[i];
      const int base = length(seq);
      if (count < 1 || count > tokens - first) {
        fail<RequestError>("Batch::counts must be positive and add up to its ", tokens,
                           " tokens; count ", i, " is ", count, " with ", tokens - first,
                           " tokens left");
      }
      if (std::exchange(stamps_[index(seq)], batches_) == batches_) {
        fail<RequestError>("a sequence may stand in a batch once, ", index(seq),
                           " stands in it twice");
      }
      if (count > limits_.context - base) full(seq, base, count);
      for (int t = 0; t < count; ++t) {
        const auto at = static_cast<std::size_t>(first) + static_cast<std::size_t>(t);
        positions_.push_back(batch.positions.empty() ? base + t : batch.positions[at]);
      }
      seqs_.push_back({seq, first, count, base, nullptr});
      first += count;
    }
    if (first != tokens) {
      fail<RequestError>("Batch::counts must add up to its ", tokens, " tokens, they add up to ",
                         first);
    }
  }
  void reserve() {
    for (const SeqStep& seq : seqs_) {
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
  [[noreturn]] void full(SeqId seq, int base, int count) const {
    fail<CapacityError>("sequence ", index(seq),
                        " has room for Limits::context = ", limits_.context, " rows, it holds ",
                        base, " and ", count,
                        " more were given; open the session with a longer context");
  }

  void run(Cpu& cpu, const Step& step, std::span<const Token> tokens, std::span<const int> want,
           MatView<float> logits, const std::stop_token& stop) {
    const auto frame = cpu.workspace().frame();
    const Dim width = model_.width();
    const auto x = cpu.take_matrix(step.tokens, width);
    cpu.each_row(step.tokens, width * 8, [&](Dim t) {
      bound().embedding.decode_row(tokens[static_cast<std::size_t>(t)], x.row(t));
    });
    turn(cpu, step);
    const LayerStep layer_step{step, angles_};
    for (const typename D::Layer& layer : bound().layers) {
      if (stop.stop_requested()) cancelled();
      Kinds::visit(layer.kind, [&](auto k) {
        using B = typename Kinds::template At<k>;
        auto& store = *std::get<static_cast<std::size_t>(Kinds::template store_of<k>)>(stores_);
        B::forward(cpu, std::get<k>(bound().weights)[layer.weights], store, layer.slot, layer_step,
                   x);
      });
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
    fail<RequestError>(
        "sequence ", index(seq), " must still have the rows that its next token sees; of ", now,
        " rows it cannot go back to ", rows, ", a ring keeps Limits::rollback = ", limits_.rollback,
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
    const std::vector<Token> tokens(static_cast<std::size_t>(limits_.step_tokens));
    const std::vector<int> want(tokens.size());
    const SeqStep whole{SeqId{0}, 0, limits_.step_tokens, 0, nullptr};
    const Step step{{&whole, 1}, {}, limits_.step_tokens};
    run(cpu, step, tokens, want, matrix<float>(nullptr, limits_.step_tokens, vocab()), {});
    return unbacked.peak();
  }

  template <std::size_t... I>
  void make_stores(std::string_view element, std::index_sequence<I...>) {
    ((std::get<I>(stores_) = std::make_unique<std::tuple_element_t<I, typename Kinds::Stores>>(
          bound().slots[I], limits_,
          element_tags<std::tuple_element_t<I, typename Kinds::Stores>>(element))),
     ...);
  }
  template <class Fn>
  void each_store(Fn&& fn) {
    std::apply([&](auto&... store) { (fn(*store), ...); }, stores_);
  }

  D model_;
  Limits limits_;
  std::size_t cache_bytes_ = 0;
  Activations activations_;
  Executor* executor_;
  std::unique_ptr<ThreadTeam> team_;
  Isa isa_ = Isa::scalar;
  typename Kinds::OwnedStores stores_;
  std::unique_ptr<Workspace> work_;
  std::vector<int> lengths_;           // [seqs]; -1: closed
  std::vector<std::uint64_t> stamps_;  // [seqs] the last batch each was in
  std::uint64_t batches_ = 0;
  std::vector<SeqStep> seqs_;
  std::vector<int> positions_;
  std::vector<RotaryAngles> angles_;
};

}  // namespace tenon::inline TENON_ABI
