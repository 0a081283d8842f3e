#pragma once
// What the example programs share: how they are told what to do, and how they fail.
#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <tenon/core/error.hpp>
#include <tenon/decode/sampling_options.hpp>
#include <tenon/kernels/activations.hpp>

// Parses, then runs body(). Exit code 0 after success or --help; 1, with one line on stderr, after
// a bad option or an error.
template <class Body>
int run_program(CLI::App& app, int argc, char** argv, Body&& body) {
#if defined(SIGXFSZ)
  std::signal(SIGXFSZ, SIG_IGN);  // and so is a file that may not become larger
#endif
#if defined(SIGPIPE)
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is an error like another
#endif
  std::string line;
  try {
    try {
      app.parse(argc, argv);
      body();
    } catch (const CLI::CallForHelp&) {
      std::cout << app.help();
    }
    std::cout.flush();
    if (std::cout) return 0;
    line = "the output could not be written; free disk space or keep its reader open";
  } catch (const std::bad_alloc&) {
    line = "memory ran out; use a smaller model, a shorter text or context, or fewer threads";
  } catch (const std::exception& error) {
    line = error.what();
  }
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  std::cerr << app.get_name() << ": " << line << '\n';
  return 1;
}

// --activations: what block-quantized weights are multiplied with.
inline tenon::Activations activations_named(const std::string& name) {
  if (name == "int8") return tenon::Activations::int8;
  if (name == "f32") return tenon::Activations::f32;
  tenon::fail<tenon::RequestError>("--activations must be int8 or f32, it is \"",
                                   tenon::printable(name), "\"");
}

// The whole number that `text` is, false if it is none. A leading zero is refused: what CLI11 then
// reads is octal.
template <class N>
bool read_whole(const std::string& text, N& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool octal = text.size() > 1 && text[text[0] == '-' ? 1 : 0] == '0';
  return error == std::errc{} && end == text.data() + text.size() && !octal;
}

// A check for options that are whole numbers from 0 to 2^64 - 1.
inline std::string whole_number(const std::string& text) {
  std::uint64_t value = 0;
  if (read_whole(text, value)) return {};
  return "must be a whole number from 0 to 18446744073709551615, it is \"" + text + "\"";
}

// A check for options that are whole numbers of that range.
inline auto from_to(int low, int high) {
  return [low, high](const std::string& text) -> std::string {
    int value = 0;
    if (read_whole(text, value) && value >= low && value <= high) return {};
    return tenon::message("must be a whole number from ", low, " to ", high, ", it is \"",
                          tenon::printable(text), "\"");
  };
}
// The most that --ctx and --batch may be.
inline constexpr int most_context = 1 << 28, most_sequences = 1 << 20;

// How the next token is drawn.
inline void add_sampling(CLI::App& app, tenon::SamplingOptions& to) {
  app.add_option("--temperature", to.temperature, "0: always the most likely token")
      ->capture_default_str();
  app.add_option("--top-k", to.top_k, "draw from the k most likely tokens; 0: all")
      ->capture_default_str();
  app.add_option("--top-p", to.top_p, "draw from the likeliest tokens that sum to p")
      ->capture_default_str();
  app.add_option("--min-p", to.min_p, "draw from tokens at least p times as likely as the best")
      ->capture_default_str();
  app.add_option("--seed", to.seed, "of the random draws")
      ->check(whole_number)
      ->capture_default_str();
}
