#pragma once
// What the example programs share: how they are told what to do, and how they fail.
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <string>

// Parses, then runs body(). Exit code 0 after success or --help; 1, with one line on stderr, after
// a bad option or an error.
template <class Body>
int run_program(CLI::App& app, int argc, char** argv, Body&& body) {
  try {
    app.parse(argc, argv);
    body();
    std::cout.flush();
    if (!std::cout)
      throw std::runtime_error(
          "the output could not be written; free disk space or keep the reader open");
    return 0;
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return 0;
  } catch (const std::exception& error) {
    std::string line = error.what();
    for (char& c : line) {
      if (c == '\n') c = ' ';
    }
    std::cerr << app.get_name() << ": " << line << '\n';
    return 1;
  }
}
