// The small tables and checks that readers and writers share.
#include <tenon/core/utf8.hpp>
#include <tenon/io/ggml_types.hpp>
#include <tenon/io/tensor_source.hpp>
#include <tenon/quant/gguf_formats.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "shared_data.hpp"

using namespace tenon;

namespace {

template <class F>
void check_same_as_table() {
  const GgmlType* type = find_ggml_type(F::ggml_type);
  REQUIRE(type != nullptr);
  CHECK(type->name == F::name);
  CHECK(type->block == F::block);
  CHECK(type->block_bytes == F::block_bytes);
}

}  // namespace

TEST_CASE("every type of quant_blocks.json is in the table of ggml types") {
  const auto path = shared_file("models/quant/quant_blocks.json");
  if (path.empty()) return;
  std::ifstream file(path);
  const auto known = nlohmann::json::parse(file);
  REQUIRE(known.size() == 26);
  for (const auto& [name, facts] : known.items()) {
    INFO(name);
    const GgmlType* type = find_ggml_type(facts["ggml_type_id"].get<int>());
    REQUIRE(type != nullptr);
    CHECK(type->name == name);
    CHECK(type->block == facts["block_elements"].get<Dim>());
    CHECK(type->block_bytes == facts["block_bytes"].get<std::size_t>());
  }
}

TEST_CASE("ids in the table ascend, and retired or future ids are absent") {
  CHECK(std::is_sorted(std::begin(ggml_types), std::end(ggml_types),
                       [](const GgmlType& a, const GgmlType& b) { return a.id < b.id; }));
  for (const int id : {-1, 4, 5, 31, 32, 33, 36, 37, 38, 43, 1000}) {
    CHECK(find_ggml_type(id) == nullptr);
  }
  // The activation-side and plain types, which quant_blocks.json does not list.
  static_assert(find_ggml_type(9)->block_bytes == 36 && find_ggml_type(15)->block_bytes == 292);
  static_assert(find_ggml_type(26)->block_bytes == 4 && find_ggml_type(28)->block_bytes == 8);
}

TEST_CASE("the formats that compute agree with the table") {
  for (int tag = 0; tag < FormatList<GgufFormats>::size; ++tag) {
    FormatList<GgufFormats>::visit(tag, []<class F>(F) { check_same_as_table<F>(); });
  }
}

TEST_CASE("UTF-8 is told from other bytes") {
  for (const std::string text :
       {"", "blk.0.attn_q.weight", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
        "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "a\xe2\x96\x81z"}) {
    INFO(printable(text));
    CHECK(is_utf8(text));
  }
  CHECK(is_utf8(std::string_view("\0", 1)));
  for (const std::string text :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2 ", "\xe0\x9f\xbf", "\xe2\x96",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf0\x9f\xa6", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff", "a\xfe", "\xe2\x96\xc1", "\xf0\x9f\xa6\x20"}) {
    INFO(printable(text));
    CHECK_FALSE(is_utf8(text));
  }
}

TEST_CASE("an index finds every tensor and nothing else") {
  std::vector<TensorInfo> tensors(1000);
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].name = "blk." + std::to_string(i);
  const TensorIndex index(tensors, "test");
  for (const TensorInfo& tensor : tensors) CHECK(index.find(tensor.name) == &tensor);
  CHECK(index.find("blk.1000") == nullptr);
  CHECK(index.find("") == nullptr);
  CHECK(TensorIndex().find("blk.1") == nullptr);
}

TEST_CASE("shapes read as lists") {
  CHECK(shape_text(std::vector<Dim>{}) == "[]");
  CHECK(shape_text(std::vector<Dim>{64}) == "[64]");
  CHECK(shape_text(std::vector<Dim>{512, 64}) == "[512, 64]");
}
