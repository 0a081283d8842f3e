// expect: tenon: tenon::compiled holds no kernels for this number format; include
// flags: -DTENON_COMPILED
#include <tenon/kernels/linear.hpp>

struct Bytes {
  static constexpr std::string_view name = "bytes";
  static constexpr tenon::Dim block = 1;
  static constexpr std::size_t block_bytes = 1;
  static void encode(const float* x, tenon::Dim n, std::byte* to);
  static void decode(const std::byte* from, tenon::Dim n, float* x);
};

template void tenon::linear<Bytes>(tenon::Executor&, tenon::Isa, tenon::MatView<const float>,
                                   std::span<const tenon::LinearOutput<Bytes>>, tenon::Activations,
                                   const tenon::QuantizedRows&);
