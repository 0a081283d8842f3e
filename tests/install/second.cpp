// The program's other translation unit: the library's functions that are no templates, from here.
#include <string>
#include <tenon/core/thread_team.hpp>
#include <tenon/io/gguf.hpp>
#include <tenon/kernels/linear.hpp>
#include <tenon/kernels/row_ops.hpp>

std::string works_in_the_second_unit();

std::string works_in_the_second_unit() {
  const tenon::Isa isa = tenon::choose_isa();
  float sum[] = {1, 2, 3};
  tenon::row_ops(isa).add_to(sum, 3, sum);
  if (sum[2] != 6) return "add_to is wrong";
  if (tenon::linear_leaf<tenon::Q8_0>(isa).int8 == nullptr) return "a kernel is missing";
  if (tenon::ThreadTeam(2).threads() != 2) return "the team is wrong";
  try {
    tenon::Gguf::from_bytes({}, "nothing");
    return "no error";
  } catch (const tenon::LoadError& error) {
    return std::string(error.what()).substr(0, 8);
  }
}
