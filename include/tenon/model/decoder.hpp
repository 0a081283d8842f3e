#pragma once
// A language model as a type: kinds of layers, a plan over them, the formats its weights may have.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "../core/thread_team.hpp"
#include "../io/quantized_source.hpp"
#include "block.hpp"
#include "concepts.hpp"
#include "config_storage.hpp"
#include "embedding.hpp"
#include "kinds.hpp"
#include "loader.hpp"
#include "memory_plan.hpp"
#include "plan.hpp"
#include "session_options.hpp"

namespace tenon::inline TENON_ABI {

template <class D>
class DecoderSession;

// Sizes of the model as a whole that a type may pin.
struct DecoderSpec {
  Dim width = dyn, layers = dyn, vocab = dyn;
};

template <class LayerKinds, auto Plan>
consteval bool explain_sharing() {
  if constexpr (requires { Plan.valid(); }) {
    static_assert(
        Plan.valid(),
        "tenon: the numbers of a layer plan must be such that every layer has a kind and "
        "an owner: periods, runs and factors of at least 1, a rare layer within its period");
  }
  if constexpr (requires { requires decltype(Plan)::fixed; }) {
    constexpr SharingFault fault =
        sharing_fault(Plan, LayerKinds::store_of_kind, LayerKinds::bounded);
    static_assert(fault != SharingFault::other_cache,
                  "tenon: a layer can only read the keys and values of a layer with the same cache "
                  "type, because each type is a pool of its own");
    static_assert(fault != SharingFault::wider_window,
                  "tenon: a layer that reads another's keys and values must not see further back "
                  "than their owner keeps them; give the owner the wider mask");
  }
  return true;
}

// Bound weights: immutable, copied as a shared handle, used by any number of threads at once.
// `Input` says how tokens become the residual stream (embedding.hpp).
template <class LayerKinds, auto Plan, class WeightFormats, DecoderSpec Spec = DecoderSpec{},
          class Input = TokenEmbedding>
class Decoder {
  static_assert(explain_plan<decltype(Plan)>() && explain_sharing<LayerKinds, Plan>());

 public:
  using kinds = LayerKinds;
  using formats = WeightFormats;
  using input = Input;
  using Session = DecoderSession<Decoder>;
  static constexpr auto plan = Plan;
  static constexpr DecoderSpec spec = Spec;

  // The norm in front of the output matrix is the one of the first kind.
  using Norm = typename kinds::template At<0>::Norm;

  // One layer: which weights of which kind, and which slot of that kind's store.
  struct Layer {
    int kind = 0;
    std::size_t weights = 0;
    Slot slot;
  };
  // The rows of each store, one entry for every layer that owns some.
  using Slots = std::array<std::vector<RowSpec>, static_cast<std::size_t>(kinds::stores)>;
  struct Bound {
    Dim width = 0, vocab = 0;
    Dim context = 0;  // what the checkpoint was trained for; 0: not stated
    std::vector<Layer> layers;
    typename kinds::template Weights<formats> weights;
    typename Input::template Weights<formats> input;
    PackedMatrix<formats> head;  // [vocab, width]; empty when tied to the embedding
    float logit_cap = 0;         // logits become cap * tanh(logits / cap); 0: they stay
    typename Norm::Weights norm;
    std::vector<RotaryFrequencies> rotaries;
    Slots slots;
    std::size_t bytes = 0;          // of the matrices
    std::size_t vector_bytes = 0;   // of all other weights
    bool outline = false;           // see BindOptions
    std::uint64_t fingerprint = 0;  // of what cached rows mean

    const PackedMatrix<formats>& output() const { return head.out() > 0 ? head : input.embedding; }
  };

  // True when the checkpoint has every size that this type pins and asks for its policies (a
  // window, experts).
  static bool accepts(const ModelConfig& config) {
    const int layers = config.layers();
    for (int i = 0; i < layers; ++i) {
      bool fits = false;
      kinds::visit(Plan.at(i, config).kind,
                   [&](auto k) { fits = kinds::template At<k>::fits(config, i); });
      if (!fits) return false;
    }
    return !first_broken_pin(config).has_value();
  }

  // Reads, checks and packs every tensor of the source, with the threads of `executor`. The source
  // is not needed afterwards; matrices of a packed file (packed_file.hpp) stay mapped, so that file
  // must not be changed. LoadError or ShapeError name the key or tensor that does not fit.
  static Decoder bind(const TensorSource& source, Executor& executor,
                      const BindOptions& options = {}) {
    if (options.quantize != nullptr) {
      BindOptions rest = options;
      rest.quantize = nullptr;
      return bind(QuantizedSource(source, *options.quantize), executor, rest);
    }
    return naming_origin(source, [&] { return bind_named(source, executor, options); });
  }
  static Decoder bind(const TensorSource& source) {
    ThreadTeam team;
    return bind(source, team);
  }

  // Shows `visitor` (see nn/bind.hpp) every tensor that a checkpoint with this configuration has,
  // as bind() would read it. LoadError as from bind().
  template <class Visitor>
  static void visit(const ModelConfig& config, Visitor& visitor) {
    check_plan(config);
    Bound bound;
    read(config, visitor, bound);
  }

  int vocab() const { return static_cast<int>(pinned_or<Spec.vocab>(bound_->vocab)); }
  Dim width() const { return pinned_or<Spec.width>(bound_->width); }
  int layers() const { return static_cast<int>(bound_->layers.size()); }
  // The context the checkpoint was trained for, in tokens; 0 when it does not say.
  int trained_context() const { return static_cast<int>(bound_->context); }
  // Bytes of the packed weights.
  std::size_t bytes() const { return bound_->bytes; }
  // Of these, the bytes that a step of one token reads: all but an embedding that is no output too.
  std::size_t step_bytes() const {
    return bytes() - (bound_->head.out() > 0 ? bound_->input.embedding.bytes() : 0);
  }

  // A session with room for `limits`; everything it will ever need is allocated here.
  Session open(const Limits& limits, const SessionOptions& options = {}) const {
    return Session(*this, limits, options);
  }
  // What a session with these limits will hold, weights included; also of an outline.
  MemoryPlan memory(const Limits& limits, const SessionOptions& options = {}) const {
    MemoryPlan all;
    all.weights = bound_->bytes;
    all.vectors = bound_->vector_bytes;
    plan_caches(limits, options.cache, all);
    all.workspace = Session::workspace_bytes(*this, limits, options);
    return all;
  }
  // Bytes of cache that a session with these limits will hold.
  std::size_t cache_bytes(const Limits& limits, std::string_view element = {}) const {
    return bytes_of(bound_->slots, limits, element);
  }
  // The same of a model with this configuration, without a checkpoint. LoadError or ShapeError name
  // the key that is missing or that this type pins to another number.
  static std::size_t cache_bytes(const ModelConfig& config, const Limits& limits,
                                 std::string_view element = {}) {
    check_plan(config);
    check_pins(config, "the configuration");
    Slots slots;
    const int layers = config.layers();
    for (int i = 0; i < layers; ++i) {
      const LayerRef ref = Plan.at(i, config);
      if (ref.source != i) continue;
      kinds::visit(ref.kind, [&](auto k) {
        using Mixer = typename kinds::template At<k>::Mixer;
        slots[static_cast<std::size_t>(kinds::template store_of<k>)].push_back(
            Mixer::rows(Mixer::Config::read(config, i)));
      });
    }
    return bytes_of(slots, limits, element);
  }
  const std::shared_ptr<const Bound>& bound() const { return bound_; }

 private:
  static Decoder bind_named(const TensorSource& source, Executor& executor,
                            const BindOptions& options) {
    const ConfigStorage storage(source);
    const ModelConfig config = storage.view();
    check_plan(config);
    check_pins(config, source.origin());
    auto bound = std::make_shared<Bound>();
    Loader<formats> loader(source, executor, options);
    read(config, loader, *bound);
    loader.refuse_unused();
    storage.refuse_unread(source.origin());
    loader.finish();
    bound->rotaries = loader.take_rotaries();
    bound->bytes = loader.bytes();
    bound->vector_bytes = loader.vector_bytes();
    bound->outline = options.outline;
    bound->fingerprint = tenon::fingerprint<kinds>(config, *bound, loader.weights_checksum());
    return Decoder(std::move(bound));
  }
  explicit Decoder(std::shared_ptr<const Bound> bound) : bound_(std::move(bound)) {}

  static void check_plan(const ModelConfig& config) {
    const int layers = config.layers();
    for (int i = 0; i < layers; ++i) {
      const LayerRef ref = Plan.at(i, config);
      const char* fault = nullptr;
      if (ref.kind < 0 || ref.kind >= kinds::size) {
        fault = "names a kind that Kinds does not have";
      } else if (ref.source < 0 || ref.source > i) {
        fault = "reads the state of a later layer";
      } else if (ref.source != i && Plan.at(ref.source, config).source != ref.source) {
        fault = "reads the state of a layer that owns none; name the owner";
      } else if (store_of(Plan.at(ref.source, config).kind) != store_of(ref.kind)) {
        fault = "reads the state of a layer with another cache type";
      }
      if (fault != nullptr) {
        fail<LoadError>("the layer plan of architecture \"", config.architecture, "\": layer ", i,
                        " ", fault, " (kind ", ref.kind, ", source ", ref.source, ")");
      }
    }
  }
  static void check_pins(const ModelConfig& config, std::string_view origin) {
    if (const std::optional<Pin> pin = first_broken_pin(config)) {
      fail<ShapeError>(origin, ": metadata key \"", config.architecture, ".", pin->key,
                       "\" must be ", pin->pinned, " as this model type pins it, it is ",
                       pin->found, "; use the type that takes its sizes from the checkpoint");
    }
  }
  static std::size_t bytes_of(const Slots& slots, const Limits& limits, std::string_view element) {
    check(limits);
    std::size_t total = 0;
    const auto add = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      using Store = std::tuple_element_t<I, typename kinds::Stores>;
      total = checked_add(total, Store::bytes(slots[I], limits, element_tags<Store>(element)));
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (add(std::integral_constant<std::size_t, I>{}), ...);
    }
    (std::make_index_sequence<static_cast<std::size_t>(kinds::stores)>{});
    return total;
  }
  // The layers of each kind that own rows. Kinds with one cache type share its store: each counts
  // what it adds to that.
  void plan_caches(const Limits& limits, std::string_view element, MemoryPlan& all) const {
    all.cache = cache_bytes(limits, element);
    Slots so_far;
    std::size_t before = 0;
    for (int kind = 0; kind < kinds::size; ++kind) {
      KindPlan of{kind, 0, 0, 0};
      for (const Layer& layer : bound_->layers) {
        if (layer.kind != kind || !layer.slot.owns) continue;
        const auto store = static_cast<std::size_t>(store_of(kind));
        const RowSpec& rows = bound_->slots[store][static_cast<std::size_t>(layer.slot.index)];
        so_far[store].push_back(rows);
        of.rows_back = rows.reach;
        ++of.layers;
      }
      if (of.layers == 0) continue;
      const std::size_t now = bytes_of(so_far, limits, element);
      of.bytes = now - before;
      before = now;
      all.kinds.push_back(of);
    }
  }
  static void check_shared(const ModelConfig& config, int layer, int owner, const RowSpec& reader,
                           const RowSpec& owned) {
    const bool wider = owned.reach != 0 && (reader.reach == 0 || reader.reach > owned.reach);
    const bool sinks = owned.reach == 0 || reader.first <= owned.first;
    if (reader.widths == owned.widths && !wider && sinks) return;
    fail<LoadError>("the layer plan of architecture \"", config.architecture, "\": layer ", layer,
                    " reads the keys and values of layer ", owner,
                    ", which must have rows of the same widths and a window with as many rows and "
                    "sinks; the rows hold ",
                    reader.widths[0], " and ", owned.widths[0], " values, the windows are ",
                    reader.reach, " and ", owned.reach, " (0: all)");
  }
  static int store_of(int kind) {
    int store = -1;
    kinds::visit(kind, [&](auto k) { store = kinds::template store_of<k>; });
    return store;
  }
  static std::optional<Pin> first_broken_pin(const ModelConfig& config) {
    std::optional<Pin> broken;
    const auto check = [&](const Pin& pin) {
      if (!pin.holds() && !broken) broken = pin;
    };
    check({"embedding_length", Spec.width, config.width()});
    check({"block_count", Spec.layers, config.layers()});
    check({"vocab_size", Spec.vocab, config.vocab()});
    const int layers = config.layers();
    for (int i = 0; i < layers && !broken; ++i) {
      kinds::visit(Plan.at(i, config).kind,
                   [&](auto k) { kinds::template At<k>::each_pin(config, i, check); });
    }
    return broken;
  }
  template <class Visitor>
  static void read(const ModelConfig& config, Visitor& visitor, Bound& bound) {
    bound.width = config.width();
    bound.vocab = config.vocab();
    if (config.has("context_length")) bound.context = config.size("context_length");
    read_layers(config, visitor, bound);
    const Axis width{bound.width, "embedding_length"};
    const Axis vocab{bound.vocab, "vocab_size"};
    visitor.within("");
    bound.input.read(config);
    bound.input.visit(visitor, width, vocab);
    if (visitor.has("output")) visitor.matrix("output", bound.head, vocab, width);
    const double cap = config.number_or("final_logit_softcapping", 0);  // 0: none
    if (!(cap == 0 || (cap > 1e-30 && cap < 1e30))) {
      fail<LoadError>("metadata key \"", config.architecture,
                      ".final_logit_softcapping\" must be 0 or positive, it is ", cap,
                      "; the file is damaged");
    }
    bound.logit_cap = static_cast<float>(cap);
    bound.norm.read(config);
    bound.norm.visit(visitor, "output_norm", width);
  }
  template <class Visitor>
  static void read_layers(const ModelConfig& config, Visitor& visitor, Bound& bound) {
    const Axis width{bound.width, "embedding_length"};
    const int layers = config.layers();
    for (int i = 0; i < layers; ++i) {
      const LayerRef ref = Plan.at(i, config);
      visitor.within(message("blk.", i, "."));
      kinds::visit(ref.kind, [&](auto k) {
        using B = typename kinds::template At<k>;
        auto& list = std::get<k>(bound.weights);
        auto& weights = list.emplace_back();
        weights.read(config, i);
        const bool owns = ref.source == i;
        auto& slots = bound.slots[static_cast<std::size_t>(kinds::template store_of<k>)];
        Slot slot{static_cast<int>(slots.size()), owns};
        const RowSpec rows = B::Mixer::rows(weights.mixer.config);
        if (owns) {
          slots.push_back(rows);
        } else {
          slot.index = bound.layers[static_cast<std::size_t>(ref.source)].slot.index;
          check_shared(config, i, ref.source, rows, slots[static_cast<std::size_t>(slot.index)]);
        }
        bound.layers.push_back({k, list.size() - 1, slot});
        weights.visit(visitor, width, owns);
      });
    }
  }

  std::shared_ptr<const Bound> bound_;
};

}  // namespace tenon::inline TENON_ABI

#include "decoder_session.hpp"
