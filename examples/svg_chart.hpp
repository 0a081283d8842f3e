#pragma once
// A chart of labelled points, as text of an SVG file.
#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <span>
#include <string>

struct ChartPoint {
  std::string label;
  double x = 0, y = 0;
};
struct ChartText {
  std::string title, x, y;  // of the whole and of the axes; plain text, without < and &
};

namespace svg {

inline std::string format(const char* pattern, ...) {
  char line[512];
  va_list values;
  va_start(values, pattern);
  std::vsnprintf(line, sizeof line, pattern, values);
  va_end(values);
  return line;
}

// A range of numbers along an axis of the page, with round steps between its ends.
struct Axis {
  double low, high, step;
  double from, to;  // pixels

  Axis(double least, double most, double from_pixel, double to_pixel)
      : from(from_pixel), to(to_pixel) {
    const double span = most > least ? most - least : 1;
    step = std::pow(10, std::floor(std::log10(span)));
    if (span < 4 * step) step /= span < 2 * step ? 5 : 2;
    low = step * std::floor(least / step);
    high = step * std::ceil(most / step);
    if (!(high > low)) high = low + step;
  }
  double at(double value) const { return from + (to - from) * (value - low) / (high - low); }
  int steps() const { return static_cast<int>(std::lround((high - low) / step)); }
};

}  // namespace svg

// x begins at zero, y where the points are. Of two labels that would touch, the later one goes
// below its point.
inline std::string svg_chart(const ChartText& text, std::span<const ChartPoint> points) {
  double most_x = 0, least_y = points.empty() ? 0 : points[0].y, most_y = least_y;
  for (const ChartPoint& p : points) {
    most_x = (std::max)(most_x, p.x);
    least_y = (std::min)(least_y, p.y);
    most_y = (std::max)(most_y, p.y);
  }
  const svg::Axis x(0, most_x, 70, 600), y(least_y, most_y, 330, 50);
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"680\" height=\"400\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n"
      "<rect width=\"680\" height=\"400\" fill=\"white\"/>\n";
  out += svg::format("<text x=\"70\" y=\"26\" font-size=\"16\">%s</text>\n", text.title.c_str());
  for (int i = 0; i <= x.steps(); ++i) {
    const double value = x.low + i * x.step, at = x.at(value);
    out += svg::format("<path d=\"M%.1f 50V330\" stroke=\"#ddd\"/>", at);
    out += svg::format("<text x=\"%.1f\" y=\"350\" text-anchor=\"middle\">%g</text>\n", at, value);
  }
  for (int i = 0; i <= y.steps(); ++i) {
    const double value = y.low + i * y.step, at = y.at(value);
    out += svg::format("<path d=\"M70 %.1fH600\" stroke=\"#ddd\"/>", at);
    out += svg::format("<text x=\"62\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", at + 4, value);
  }
  out +=
      svg::format("<text x=\"335\" y=\"380\" text-anchor=\"middle\">%s</text>\n", text.x.c_str());
  out += svg::format(
      "<text transform=\"translate(20 190) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
      text.y.c_str());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double px = x.at(points[i].x), py = y.at(points[i].y);
    bool touches = false;
    for (std::size_t k = 0; k < i; ++k) {
      touches |= std::abs(px - x.at(points[k].x)) < 110 && std::abs(py - y.at(points[k].y)) < 16;
    }
    out += svg::format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"#1f5fbf\"/>", px, py);
    out += svg::format("<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", px + 9, py + (touches ? 18 : 4),
                       points[i].label.c_str());
  }
  return out + "</svg>\n";
}
