#pragma once
// The searches of the K-quants' encoders: codes and scale of a group of 16 or 32 values. They give
// the bits of the reference quantizer without an importance matrix (ggml's make_qx_quants,
// make_q3_quants and make_qkx2_quants), so the order of every sum and each rounding is fixed.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rounding.hpp"

namespace tenon::inline TENON_ABI::detail {

// Groups whose values all are smaller become zeros.
inline constexpr float negligible_value = 1e-15f;

// Sums of the least squares x ~ scale * q: w x q and w q^2.
struct ScaleFit {
  float cross = 0, square = 0;
  void add(float w, float x, float q) {
    cross += product(w * x, q);
    square += product(w * q, q);
  }
  void remove(float w, float x, float q) {
    cross -= product(w * x, q);
    square -= product(w * q, q);
  }
  float scale() const { return square > 0 ? cross / square : 0.0f; }
};

// x ~ scale * q with q in [-top, top - 1] and these weights [n], or x^2. Writes q + top to codes
// [n]; returns the scale, which may be negative, or 0 with codes 0 where all of x is negligible.
// The peak is put on 19 levels around -top; the one that explains most wins.
inline float search_symmetric(const float* x, Dim n, int top, std::uint8_t* codes,
                              const float* weights = nullptr) {
  const float peak = signed_peak(x, n);
  if (std::fabs(peak) < negligible_value) {
    std::fill_n(codes, n, std::uint8_t{0});
    return 0;
  }
  const auto code = [&](float inverse, Dim i) {
    return std::clamp(nearest(product(inverse, x[i])), -top, top - 1);
  };
  const auto fit_to = [&](float inverse) {
    ScaleFit fit;
    for (Dim i = 0; i < n; ++i) {
      const float w = weights == nullptr ? x[i] * x[i] : weights[i];
      fit.add(w, x[i], static_cast<float>(code(inverse, i)));
    }
    return fit;
  };
  float kept = -static_cast<float>(top) / peak;  // the inverse scale whose codes are kept
  const ScaleFit plain = fit_to(kept);
  float scale = plain.scale(), best = scale * plain.cross;
  for (int step = -9; step <= 9; ++step) {
    if (step == 0) continue;
    const float inverse =
        -multiply_then_add(0.1f, static_cast<float>(step), static_cast<float>(top)) / peak;
    const ScaleFit fit = fit_to(inverse);
    if (fit.square > 0 && fit.cross * fit.cross > best * fit.square) {
      scale = fit.scale();
      best = scale * fit.cross;
      kept = inverse;
    }
  }
  for (Dim i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>(code(kept, i) + top);
  return scale;
}

// The same by descent: starts with the peak on -top and moves one code at a time, at most five
// times through all of them, to where the others' best scale would have it.
inline float descend_symmetric(const float* x, Dim n, int top, std::uint8_t* codes,
                               const float* = nullptr) {
  const float peak = signed_peak(x, n);
  if (std::fabs(peak) < negligible_value) {
    std::fill_n(codes, n, std::uint8_t{0});
    return 0;
  }
  const auto bounded = [&](int q) { return std::clamp(q, -top, top - 1); };
  const float inverse = -static_cast<float>(top) / peak;
  ScaleFit fit;
  for (Dim i = 0; i < n; ++i) {
    const int q = bounded(nearest(product(inverse, x[i])));
    codes[i] = static_cast<std::uint8_t>(q + top);
    fit.add(x[i] * x[i], x[i], static_cast<float>(q));
  }
  for (int round = 0; round < 5; ++round) {
    bool moved = false;
    for (Dim i = 0; i < n; ++i) {
      const float w = x[i] * x[i];
      const int q = codes[i] - top;
      ScaleFit others = fit;
      others.remove(w, x[i], static_cast<float>(q));
      if (!(others.cross > 0)) continue;
      const int better = bounded(nearest(x[i] * others.square / others.cross));
      if (better == q) continue;
      others.add(w, x[i], static_cast<float>(better));
      if (others.square > 0 &&
          others.cross * others.cross * fit.square > fit.cross * fit.cross * others.square) {
        codes[i] = static_cast<std::uint8_t>(better + top);
        fit = others;
        moved = true;
      }
    }
    if (!moved) break;
  }
  return fit.scale();
}

// x ~ scale * q with q in [0, top], none of x negative. Writes codes [n] and returns the scale:
// nine of them are tried, then one code at a time moves to where the others' best scale would have
// it.
inline float search_positive(const float* x, const float* weights, Dim n, int top,
                             std::uint8_t* codes) {
  const float most = *std::max_element(x, x + n);
  std::fill_n(codes, n, std::uint8_t{0});
  if (most < negligible_value) return 0;
  const auto code = [&](float inverse, Dim i) {
    return (std::min)(nearest(product(inverse, x[i])), top);
  };
  const auto error_of = [&](float inverse) {
    const float scale = 1.0f / inverse;
    float error = 0;
    for (Dim i = 0; i < n; ++i) {
      const float e = x[i] - product(scale, static_cast<float>(code(inverse, i)));
      error += product(product(weights[i], e), e);
    }
    return error;
  };
  float kept = static_cast<float>(top) / most, best = error_of(kept);
  for (int step = -4; step <= 4; ++step) {
    if (step == 0) continue;
    const float inverse =
        multiply_then_add(0.1f, static_cast<float>(step), static_cast<float>(top)) / most;
    const float error = error_of(inverse);
    if (error < best) {
      best = error;
      kept = inverse;
    }
  }
  ScaleFit fit;
  for (Dim i = 0; i < n; ++i) {
    const int q = code(kept, i);
    codes[i] = static_cast<std::uint8_t>(q);
    fit.add(weights[i], x[i], static_cast<float>(q));
  }
  for (int round = 0; round < 5; ++round) {
    bool moved = false;
    for (Dim i = 0; i < n; ++i) {
      ScaleFit others = fit;
      others.remove(weights[i], x[i], static_cast<float>(codes[i]));
      if (!(others.cross > 0 && others.square > 0)) continue;
      const int better = (std::min)(nearest(x[i] * others.square / others.cross), top);
      if (better == codes[i]) continue;
      others.add(weights[i], x[i], static_cast<float>(better));
      if (others.cross * others.cross * fit.square > fit.cross * fit.cross * others.square) {
        codes[i] = static_cast<std::uint8_t>(better);
        fit = others;
        moved = true;
      }
    }
    if (!moved) break;
  }
  return fit.scale();
}

// What an affine group is: x ~ scale * q - minimum with q in [0, top], minimum >= 0.
struct AffineFit {
  float scale = 0, minimum = 0;
};
// How it is searched: the range is put on first + step * i + top levels, i in [0, last]; the error
// that counts is the sum of w |e|, or of w e^2.
struct AffineSearch {
  float first, step;
  int last;
  bool squares;
};

// How a group is searched when errors are weighed by importance.
inline constexpr AffineSearch important_search{-0.9f, 0.05f, 36, true};

// Fits n <= 32 values with positive weights [n] and writes codes [n]. Each try divides the range
// from the best minimum so far, solves the weighted least squares for those codes, and is kept if
// its error is smaller. All of x equal and none positive: the codes are 0 and so is the scale.
inline AffineFit search_affine(const float* x, const float* weights, Dim n, int top,
                               const AffineSearch& search, std::uint8_t* codes) {
  float low = x[0], high = x[0], sum_w = 0, sum_x = 0;
  for (Dim i = 0; i < n; ++i) {
    low = (std::min)(low, x[i]);
    high = (std::max)(high, x[i]);
    sum_w += weights[i];
    sum_x += product(weights[i], x[i]);
  }
  if (low > 0) low = 0;
  if (high == low) {
    std::fill_n(codes, n, std::uint8_t{0});
    return {0, -low};
  }
  const auto divide = [&](float inverse, std::uint8_t* to) {
    for (Dim i = 0; i < n; ++i) {
      to[i] = static_cast<std::uint8_t>(std::clamp(nearest(product(inverse, x[i] - low)), 0, top));
    }
  };
  const auto error_of = [&](const std::uint8_t* of, float scale, float offset) {
    float error = 0;
    for (Dim i = 0; i < n; ++i) {
      const float e = multiply_then_add(scale, static_cast<float>(of[i]), offset) - x[i];
      error += product(weights[i], search.squares ? product(e, e) : std::fabs(e));
    }
    return error;
  };
  const auto levels = static_cast<float>(top);
  const float inverse = levels / (high - low);
  float scale = 1.0f / inverse;
  divide(inverse, codes);
  float best = error_of(codes, scale, low);
  std::uint8_t trial[32];
  for (int i = 0; i <= search.last; ++i) {
    const float range =
        multiply_then_add(search.step, static_cast<float>(i), search.first) + levels;
    divide(range / (high - low), trial);
    float l = 0, ll = 0, xl = 0;  // weighted sums of codes, their squares, and codes times x
    for (Dim k = 0; k < n; ++k) {
      const auto q = static_cast<float>(trial[k]);
      const float wq = product(weights[k], q);
      l += wq;
      ll += product(wq, q);
      xl += product(wq, x[k]);
    }
    const float determinant = product(sum_w, ll) - product(l, l);
    if (!(determinant > 0)) continue;
    float its_scale = (product(sum_w, xl) - product(sum_x, l)) / determinant;
    float its_low = (product(ll, sum_x) - product(l, xl)) / determinant;
    if (its_low > 0) {
      its_low = 0;
      its_scale = xl / ll;
    }
    const float error = error_of(trial, its_scale, its_low);
    if (error < best) {
      std::copy_n(trial, n, codes);
      best = error;
      scale = its_scale;
      low = its_low;
    }
  }
  return {scale, -low};
}

}  // namespace tenon::inline TENON_ABI::detail
