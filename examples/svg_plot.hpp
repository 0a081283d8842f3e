#pragma once
// Plots as text of SVG files that need no other file and no colour: series differ by marker and by
// dashes, parts of a bar by hatching.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "svg_chart.hpp"

namespace svg {

// `text` with what means something in XML spelled out.
inline std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') out += "&lt;";
    if (c == '>') out += "&gt;";
    if (c == '&') out += "&amp;";
    if (c == '"') out += "&quot;";
    if (c != '<' && c != '>' && c != '&' && c != '"') out += c;
  }
  return out;
}

// Text of XML: see escaped(). Titles are of at most 400 bytes.
struct Labels {
  std::string title, x, y;
};

struct Point {
  double x = 0, y = 0;
  std::string label{};
};
struct Series {
  std::string label;
  std::vector<Point> points;
  int dash = -1;    // 0: a solid line, 1 to 4: dashed ones; -1: no line
  int marker = -1;  // 0 to 5: circle, square, triangle, diamond, cross, plus; -1: none
  bool hollow = false;
};

inline std::string opening(int width, int height, const std::string& title) {
  return format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
             "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
             "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
             width, height, width, height, width, height) +
         format("<text x=\"70\" y=\"26\" font-size=\"15\">%s</text>\n", title.c_str());
}
inline std::string words(double x, double y, const char* anchor, const std::string& text) {
  return format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor) + text +
         "</text>\n";
}
inline std::string line_style(int dash) {
  const char* dashes[] = {"", "7 4", "2 3", "10 3 2 3", "4 2 1 2 1 2"};
  return dash % 5 == 0 ? std::string() : format(" stroke-dasharray=\"%s\"", dashes[dash % 5]);
}
inline std::string marker(int kind, bool hollow, double x, double y) {
  const char* fill = hollow ? "white" : "black";
  switch (kind % 6) {
    case 0:
      return format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\" stroke=\"black\"/>\n", x,
                    y, fill);
    case 1:
      return format("<path d=\"M%.1f %.1fh8v8h-8z\" fill=\"%s\" stroke=\"black\"/>\n", x - 4, y - 4,
                    fill);
    case 2:
      return format("<path d=\"M%.1f %.1fl5 9h-10z\" fill=\"%s\" stroke=\"black\"/>\n", x, y - 5,
                    fill);
    case 3:
      return format("<path d=\"M%.1f %.1fl5 5l-5 5l-5-5z\" fill=\"%s\" stroke=\"black\"/>\n", x,
                    y - 5, fill);
    case 4:
      return format(
          "<path d=\"M%.1f %.1fl8 8m0-8l-8 8\" fill=\"none\" stroke=\"black\" "
          "stroke-width=\"%s\"/>\n",
          x - 4, y - 4, hollow ? "1" : "2");
    default:
      return format(
          "<path d=\"M%.1f %.1fh10m-5-5v10\" fill=\"none\" stroke=\"black\" "
          "stroke-width=\"%s\"/>\n",
          x - 5, y, hollow ? "1" : "2");
  }
}
// 20 k, 1.5 G: at most three digits and a decimal prefix.
inline std::string short_number(double x) {
  const char* prefixes[] = {"", " k", " M", " G", " T", " P", " E"};
  int i = 0;
  for (; x >= 999.5 && i < 6; ++i) x /= 1000;
  return format("%.3g%s", x, prefixes[i]);
}

// An axis of powers of ten.
class LogAxis {
 public:
  LogAxis(double least, double most, double from, double to)
      : low_(std::log10(least)), high_(std::log10(most)), from_(from), to_(to) {
    const double room = (std::max)(high_ - low_, 0.3) * 0.04;
    low_ -= room;
    high_ += room;
  }
  double at(double value) const {
    return from_ + (to_ - from_) * (std::log10(value) - low_) / (high_ - low_);
  }
  double least() const { return std::pow(10, low_); }
  double most() const { return std::pow(10, high_); }
  // Powers of ten, and where these are few, two and five times them.
  std::vector<double> ticks() const {
    std::vector<double> all;
    const bool few = high_ - low_ < 3.5;
    for (int e = static_cast<int>(std::floor(low_)); e <= static_cast<int>(std::ceil(high_)); ++e) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        if (digit > 1 && !few) continue;
        const double value = digit * std::pow(10, e);
        if (std::log10(value) >= low_ && std::log10(value) <= high_) all.push_back(value);
      }
    }
    return all;
  }

 private:
  double low_, high_, from_, to_;
};

// Series over two logarithmic axes, with a legend beside them. What is not above zero is left out.
// A label is left out where it would cover an earlier one.
inline std::string log_plot(const Labels& text, const std::vector<Series>& series,
                            const std::vector<std::string>& notes = {}) {
  double least_x = 1e300, most_x = 0, least_y = 1e300, most_y = 0;
  for (const Series& s : series) {
    for (const Point& p : s.points) {
      if (!(p.x > 0 && p.y > 0)) continue;
      least_x = (std::min)(least_x, p.x);
      most_x = (std::max)(most_x, p.x);
      least_y = (std::min)(least_y, p.y);
      most_y = (std::max)(most_y, p.y);
    }
  }
  if (!(most_x > 0)) least_x = most_x = least_y = most_y = 1;
  constexpr double left = 80, right = 560, top = 45, bottom = 385;
  const LogAxis x(least_x, most_x, left, right), y(least_y, most_y, bottom, top);
  std::string out = opening(800, 440, text.title);
  for (const double tick : x.ticks()) {
    out += format("<path d=\"M%.1f %.0fV%.0f\" stroke=\"#ccc\"/>", x.at(tick), top, bottom);
    out += words(x.at(tick), bottom + 17, "middle", short_number(tick));
  }
  for (const double tick : y.ticks()) {
    out += format("<path d=\"M%.0f %.1fH%.0f\" stroke=\"#ccc\"/>", left, y.at(tick), right);
    out += words(left - 8, y.at(tick) + 4, "end", short_number(tick));
  }
  out += format("<path d=\"M%.0f %.0fV%.0fH%.0f\" fill=\"none\" stroke=\"black\"/>\n", left, top,
                bottom, right);
  out += words((left + right) / 2, bottom + 40, "middle", text.x);
  out += format("<text transform=\"translate(20 %.0f) rotate(-90)\" text-anchor=\"middle\">",
                (top + bottom) / 2) +
         text.y + "</text>\n";
  for (const Series& s : series) {
    std::string path;
    for (const Point& p : s.points) {
      if (!(p.x > 0 && p.y > 0)) continue;
      path += format("%s%.1f %.1f", path.empty() ? "M" : "L", x.at(p.x), y.at(p.y));
    }
    if (s.dash >= 0 && !path.empty()) {
      out +=
          "<path d=\"" + path + "\" fill=\"none\" stroke=\"black\"" + line_style(s.dash) + "/>\n";
    }
  }
  std::vector<std::pair<double, double>> placed;
  for (const Series& s : series) {
    for (const Point& p : s.points) {
      if (!(p.x > 0 && p.y > 0)) continue;
      const double px = x.at(p.x), py = y.at(p.y);
      if (s.marker >= 0) out += marker(s.marker, s.hollow, px, py);
      if (p.label.empty()) continue;
      const bool covered = std::any_of(placed.begin(), placed.end(), [&](const auto& at) {
        return std::abs(at.first - px) < 28 && std::abs(at.second - py) < 13;
      });
      if (covered) continue;
      placed.emplace_back(px, py);
      out += words(px + 7, py + 14, "start", p.label);
    }
  }
  double at = top + 8;
  for (const Series& s : series) {
    if (s.label.empty()) continue;
    if (s.dash >= 0) {
      out += format("<path d=\"M%.0f %.0fh34\" stroke=\"black\"", right + 15, at) +
             line_style(s.dash) + "/>\n";
    }
    if (s.marker >= 0) out += marker(s.marker, s.hollow, right + 32, at);
    out += words(right + 56, at + 4, "start", s.label);
    at += 19;
  }
  for (const std::string& note : notes) {
    at += 17;
    out += words(right + 15, at, "start", note);
  }
  return out + "</svg>\n";
}

struct Bar {
  std::string label, note;  // before and behind it
  std::vector<double> parts;
};
// Horizontal bars of the same length whose parts are shares of their sum.
inline std::string share_bars(const Labels& text, const std::vector<std::string>& parts,
                              const std::vector<Bar>& bars) {
  constexpr double left = 150, right = 620;
  const double bottom = 60 + 30 * static_cast<double>(bars.size());
  std::string out = opening(800, static_cast<int>(bottom) + 85, text.title);
  const char* hatches[] = {"", "M0 8L8 0", "M0 0L8 8M0 8L8 0", "M4 0V8", "M0 4H8", "M2 2h2v2h-2z"};
  out += "<defs>\n";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    out += format(
        "<pattern id=\"p%zu\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">"
        "<rect width=\"8\" height=\"8\" fill=\"%s\"/><path d=\"%s\" stroke=\"black\"/></pattern>\n",
        i, i % 6 == 0 ? "#555" : "white", hatches[i % 6]);
  }
  out += "</defs>\n";
  const auto piece = [](double x, double y, double width, std::size_t i) {
    return format(
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"18\" fill=\"url(#p%zu)\" "
        "stroke=\"black\"/>\n",
        x, y, width, i);
  };
  double y = 45;
  for (const Bar& bar : bars) {
    double sum = 0, x = left;
    for (const double part : bar.parts) sum += part;
    for (std::size_t i = 0; i < bar.parts.size(); ++i) {
      const double width = sum > 0 ? (right - left) * bar.parts[i] / sum : 0;
      if (width >= 0.05) out += piece(x, y, width, i);
      x += width;
    }
    out += words(left - 8, y + 14, "end", bar.label) + words(right + 8, y + 14, "start", bar.note);
    y += 30;
  }
  for (int i = 0; i <= 4; ++i) {
    const double x = left + (right - left) * i / 4;
    out += format("<path d=\"M%.1f %.1fv6\" stroke=\"black\"/>", x, bottom - 15);
    out += words(x, bottom + 6, "middle", format("%d %%", 25 * i));
  }
  out += words((left + right) / 2, bottom + 28, "middle", text.x);
  double x = 70;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    out += piece(x, bottom + 48, 24, i) + words(x + 30, bottom + 62, "start", parts[i]);
    x += 50 + 7.2 * static_cast<double>(parts[i].size());
  }
  return out + "</svg>\n";
}

}  // namespace svg
