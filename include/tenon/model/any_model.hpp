#pragma once
// A model whose type is chosen at load: one virtual call per step, and a Model itself, so whatever
// is written against Model and ModelSession works on it.
#include <memory>
#include <span>
#include <vector>

#include "concepts.hpp"
#include "memory_plan.hpp"
#include "session_options.hpp"

namespace tenon::inline TENON_ABI {

// Satisfies ModelSession.
class AnySession {
 public:
  template <class S>
  requires(!std::same_as<S, AnySession>) && ModelSession<S> explicit AnySession(S session)
      : self_(std::make_unique<Holder<S>>(std::move(session))) {}

  int vocab() const { return self_->vocab(); }
  const Limits& limits() const { return self_->limits(); }
  int threads() const { return self_->threads(); }
  Isa isa() const { return self_->isa(); }
  std::size_t cache_bytes() const { return self_->cache_bytes(); }
  std::size_t workspace_bytes() const { return self_->workspace_bytes(); }
  int length(SeqId seq) const { return self_->length(seq); }
  SeqId open() { return self_->open(); }
  void truncate(SeqId seq, int rows) { self_->truncate(seq, rows); }
  void close(SeqId seq) { self_->close(seq); }
  // RequestError from a session that cannot.
  SeqId fork(SeqId seq) { return self_->fork(seq); }
  void shift(SeqId seq, int keep, int drop) { self_->shift(seq, keep, drop); }
  void accept(SeqId seq, std::span<const int> path) { self_->accept(seq, path); }
  std::vector<std::byte> save(SeqId seq) const { return self_->save(seq); }
  SeqId restore(std::span<const std::byte> saved) { return self_->restore(saved); }
  void forward(const Batch& batch, MatView<float> logits, std::stop_token stop = {}) {
    self_->forward(batch, logits, std::move(stop));
  }

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual int vocab() const = 0;
    virtual const Limits& limits() const = 0;
    virtual int threads() const = 0;
    virtual Isa isa() const = 0;
    virtual std::size_t cache_bytes() const = 0;
    virtual std::size_t workspace_bytes() const = 0;
    virtual int length(SeqId seq) const = 0;
    virtual SeqId open() = 0;
    virtual SeqId fork(SeqId seq) = 0;
    virtual void shift(SeqId seq, int keep, int drop) = 0;
    virtual void accept(SeqId seq, std::span<const int> path) = 0;
    virtual void truncate(SeqId seq, int rows) = 0;
    virtual void close(SeqId seq) = 0;
    virtual std::vector<std::byte> save(SeqId seq) const = 0;
    virtual SeqId restore(std::span<const std::byte> saved) = 0;
    virtual void forward(const Batch& batch, MatView<float> logits, std::stop_token stop) = 0;
  };
  template <class S>
  struct Holder final : Interface {
    explicit Holder(S session) : held(std::move(session)) {}
    int vocab() const override { return held.vocab(); }
    const Limits& limits() const override { return held.limits(); }
    int threads() const override { return held.threads(); }
    Isa isa() const override { return held.isa(); }
    std::size_t cache_bytes() const override { return held.cache_bytes(); }
    std::size_t workspace_bytes() const override { return held.workspace_bytes(); }
    int length(SeqId seq) const override { return held.length(seq); }
    SeqId open() override { return held.open(); }
    SeqId fork(SeqId seq) override {
      if constexpr (requires { requires !S::forks; }) {
        cannot("fork");
      } else {
        return held.fork(seq);
      }
    }
    void shift(SeqId seq, int keep, int drop) override {
      if constexpr (requires { requires S::shifts; }) {
        held.shift(seq, keep, drop);
      } else {
        cannot("shift");
      }
    }
    void accept(SeqId seq, std::span<const int> path) override {
      if constexpr (requires { held.accept(seq, path); }) {
        held.accept(seq, path);
      } else {
        cannot("accept");
      }
    }
    void truncate(SeqId seq, int rows) override { held.truncate(seq, rows); }
    void close(SeqId seq) override { held.close(seq); }
    std::vector<std::byte> save(SeqId seq) const override {
      if constexpr (requires { held.save(seq); }) {
        return held.save(seq);
      } else {
        cannot("save");
      }
    }
    SeqId restore(std::span<const std::byte> saved) override {
      if constexpr (requires { held.restore(saved); }) {
        return held.restore(saved);
      } else {
        cannot("restore");
      }
    }
    [[noreturn]] static void cannot(std::string_view operation) {
      fail<RequestError>(operation,
                         " must be supported by every cache of the model, one behind this session "
                         "does not (a Ring overwrites rows); feed the sequence again, or compose "
                         "the model with Contiguous or Paged");
    }
    void forward(const Batch& batch, MatView<float> logits, std::stop_token stop) override {
      held.forward(batch, logits, std::move(stop));
    }
    S held;
  };
  std::unique_ptr<Interface> self_;
};

// Satisfies Model.
class AnyModel {
 public:
  using Session = AnySession;

  template <class M>
  requires(!std::same_as<M, AnyModel>) && Model<M> explicit AnyModel(M model)
      : self_(std::make_shared<Holder<M>>(std::move(model))) {}

  int vocab() const { return self_->vocab(); }
  int layers() const { return self_->layers(); }
  int trained_context() const { return self_->trained_context(); }
  std::size_t bytes() const { return self_->bytes(); }
  std::size_t step_bytes() const { return self_->step_bytes(); }
  std::size_t cache_bytes(const Limits& limits, std::string_view element = {}) const {
    return self_->cache_bytes(limits, element);
  }
  AnySession open(const Limits& limits, const SessionOptions& options = {}) const {
    return self_->open(limits, options);
  }
  // RequestError from a model that cannot say.
  MemoryPlan memory(const Limits& limits, const SessionOptions& options = {}) const {
    return self_->memory(limits, options);
  }

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual int vocab() const = 0;
    virtual int layers() const = 0;
    virtual int trained_context() const = 0;
    virtual std::size_t bytes() const = 0;
    virtual std::size_t step_bytes() const = 0;
    virtual std::size_t cache_bytes(const Limits& limits, std::string_view element) const = 0;
    virtual AnySession open(const Limits& limits, const SessionOptions& options) const = 0;
    virtual MemoryPlan memory(const Limits& limits, const SessionOptions& options) const = 0;
  };
  template <class M>
  struct Holder final : Interface {
    explicit Holder(M model) : held(std::move(model)) {}
    int vocab() const override { return held.vocab(); }
    int layers() const override { return held.layers(); }
    int trained_context() const override { return held.trained_context(); }
    std::size_t bytes() const override { return held.bytes(); }
    std::size_t step_bytes() const override { return held.step_bytes(); }
    std::size_t cache_bytes(const Limits& limits, std::string_view element) const override {
      return held.cache_bytes(limits, element);
    }
    AnySession open(const Limits& limits, const SessionOptions& options) const override {
      return AnySession(held.open(limits, options));
    }
    MemoryPlan memory(const Limits& limits, const SessionOptions& options) const override {
      if constexpr (requires { held.memory(limits, options); }) {
        return held.memory(limits, options);
      } else {
        fail<RequestError>(
            "a memory plan takes a model that has memory(), this one has none; open a session and "
            "ask it for its bytes");
      }
    }
    M held;
  };
  std::shared_ptr<const Interface> self_;
};

static_assert(ModelSession<AnySession> && Model<AnyModel>);

}  // namespace tenon::inline TENON_ABI
