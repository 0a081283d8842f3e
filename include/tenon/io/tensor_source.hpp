#pragma once
// What a checkpoint is to the model binder, whatever the file format: metadata and named tensors.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/metadata.hpp"
#include "../core/stored_bytes.hpp"
#include "../core/types.hpp"

namespace tenon::inline TENON_ABI {

// One stored tensor. `shape` has the slowest axis first, so a linear weight is [out, in] and the
// last axis is contiguous. `data` is exactly the tensor's bytes, at an address of any alignment, or
// made of others when it is read; it belongs to the source and lives as long as that.
struct TensorInfo {
  std::string name;
  int ggml_type = 0;
  std::vector<Dim> shape;
  StoredBytes data;
};

// A shape as messages show it: [32, 64].
std::string shape_text(std::span<const Dim> shape);

// An open checkpoint. Everything in it was checked against the bytes that exist when it was opened.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  // The path it was opened from, for messages.
  virtual std::string_view origin() const = 0;
  virtual const Metadata& metadata() const = 0;
  // All tensors, in the order of the file; names are distinct.
  virtual std::span<const TensorInfo> tensors() const = 0;
  // The tensor of that name, or null; takes constant time.
  virtual const TensorInfo* find(std::string_view name) const = 0;
  // The caller has read this part of a tensor's data, where it lies, and will not soon again, so
  // its pages need not stay in memory. May be called from several threads at once.
  virtual void done_with(std::span<const std::byte>) const {}

  // While a copy of this lives, the bytes of the tensors stay where they are, with or without the
  // source. Null when the source cannot promise that.
  virtual std::shared_ptr<const void> keep_alive() const { return nullptr; }

 protected:
  TensorSource() = default;
  TensorSource(const TensorSource&) = default;
  TensorSource(TensorSource&&) = default;
  TensorSource& operator=(const TensorSource&) = default;
  TensorSource& operator=(TensorSource&&) = default;
};

// Calls read(), which reads the source; its errors name the source.
template <class Read>
decltype(auto) naming_origin(const TensorSource& source, Read&& read) {
  return naming_origin(source.origin(), std::forward<Read>(read));
}

// Finds tensors by name in constant time. It points to the tensors, which must stay where they are.
// Two tensors of one name are a LoadError, and so are names made to share one hash: looking each of
// a million of those up would take hours.
class TensorIndex {
 public:
  TensorIndex() = default;
  TensorIndex(std::span<const TensorInfo> tensors, std::string_view origin);
  const TensorInfo* find(std::string_view name) const;

 private:
  std::unordered_map<std::string_view, const TensorInfo*> by_name_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "tensor_source.inl"
#endif
