#pragma once
// The gate from a file to a type: a closed list of architectures, one entry a family.
#include <string>

#include "../core/fixed_string.hpp"
#include "../core/thread_team.hpp"
#include "any_model.hpp"
#include "bind_options.hpp"
#include "config_storage.hpp"
#include "loader.hpp"

namespace tenon::inline TENON_ABI {

// The model of a checkpoint behind one interface. A function of its own, so that tenon::zoo can
// hold it for the families of the zoo.
template <class M>
AnyModel bind_any(const TensorSource& source, Executor& executor, const BindOptions& options) {
  return AnyModel(M::bind(source, executor, options));
}

// Models of one architecture, as `general.architecture` names it. Several types (other pinned
// sizes, say) are tried in order; the first that accepts the checkpoint is used.
template <FixedString Architecture, class... Models>
struct Entry {
  static_assert(sizeof...(Models) >= 1 && (Model<Models> && ...),
                "tenon: an Entry takes the name of an architecture and complete model types");
  static constexpr std::string_view architecture = Architecture.view();

  // An AnyModel of the first type that fits, or null when none does.
  static std::unique_ptr<AnyModel> bind(const TensorSource& source, const ModelConfig& config,
                                        Executor& executor, const BindOptions& options) {
    std::unique_ptr<AnyModel> model;
    static_cast<void>((
        (Models::accepts(config) &&
         (model = std::make_unique<AnyModel>(bind_any<Models>(source, executor, options)), true)) ||
        ...));
    return model;
  }
};

// Programs pay, in build time and size, for the entries they list and no others.
template <class... Entries>
struct Registry {
  // LoadError when no entry has the checkpoint's architecture, ShapeError when none of its types
  // accepts the checkpoint's sizes; both list what there is.
  static AnyModel load(const TensorSource& source, Executor& executor,
                       const BindOptions& options = {}) {
    return naming_origin(source, [&] { return load_named(source, executor, options); });
  }
  static AnyModel load(const TensorSource& source) {
    ThreadTeam team;
    return load(source, team);
  }
  // The same without the weights, from the headers alone: what it would hold (memory_plan.hpp).
  static AnyModel outline(const TensorSource& source) {
    SerialExecutor serial;
    BindOptions options;
    options.outline = true;
    return load(source, serial, options);
  }
  static std::string names() {
    std::string all;
    ((all += message(all.empty() ? "" : ", ", Entries::architecture)), ...);
    return all;
  }

 private:
  static AnyModel load_named(const TensorSource& source, Executor& executor,
                             const BindOptions& options) {
    const ConfigStorage storage(source);
    const ModelConfig config = storage.view();
    std::unique_ptr<AnyModel> model;
    bool known = false;
    const auto offer = [&]<class E>(std::type_identity<E>) {
      if (model || E::architecture != config.architecture) return;
      known = true;
      model = E::bind(source, config, executor, options);
    };
    (offer(std::type_identity<Entries>{}), ...);
    if (model) return std::move(*model);
    if (known) {
      fail<ShapeError>(
          source.origin(), ": a type for architecture \"", config.architecture,
          "\" is listed, but it pins sizes that this checkpoint does not have; list one that "
          "takes its sizes from the checkpoint");
    }
    fail<LoadError>(source.origin(), ": the architecture must be one of ", names(), ", it is \"",
                    printable(config.architecture),
                    "\"; add an Entry for it to the program's Registry");
  }
};

}  // namespace tenon::inline TENON_ABI
