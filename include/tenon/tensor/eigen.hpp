#pragma once
// The bridge to Eigen, and the only header that includes it.
#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#include <type_traits>

#include "view.hpp"

namespace tenon::inline TENON_ABI {

template <class T>
using EigenMatrix =
    Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// The same numbers as an Eigen matrix [rows, columns]; they stay where they are.
template <class T>
auto as_eigen(MatView<T> m) {
  using Plain = EigenMatrix<T>;
  using Mapped = std::conditional_t<std::is_const_v<T>, const Plain, Plain>;
  return Eigen::Map<Mapped>(m.data, static_cast<Eigen::Index>(m.extent(0)),
                            static_cast<Eigen::Index>(m.extent(1)));
}

}  // namespace tenon::inline TENON_ABI
