# Settings of our own programs (tests, examples, benchmarks). None of them reaches a consumer.
if(PROJECT_IS_TOP_LEVEL)
  get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(NOT multi_config AND NOT CMAKE_BUILD_TYPE)
    set_property(CACHE CMAKE_BUILD_TYPE PROPERTY VALUE Release)
  endif()
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  find_program(CCACHE_PROGRAM ccache)
  mark_as_advanced(CCACHE_PROGRAM)
  if(CCACHE_PROGRAM AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
    set_target_properties(tenon_compiled tenon_zoo PROPERTIES CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  endif()
endif()

set(tenon_warnings -Wall -Wextra -Wconversion -Wshadow)

add_library(tenon_development INTERFACE)
target_link_libraries(tenon_development INTERFACE tenon::tenon)
target_compile_options(tenon_development INTERFACE ${tenon_warnings} $<$<BOOL:${TENON_WERROR}>:-Werror>)

target_link_libraries(tenon_compiled PRIVATE $<BUILD_INTERFACE:tenon_development>)

if(TENON_SANITIZE STREQUAL "address")
  set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(TENON_SANITIZE STREQUAL "thread")
  set(sanitizers -fsanitize=thread -fno-omit-frame-pointer)
  # A test that counts allocations replaces operator new, and so does this sanitizer's runtime.
  target_link_options(tenon_development INTERFACE -Wl,--allow-multiple-definition)
elseif(NOT TENON_SANITIZE STREQUAL "")
  message(FATAL_ERROR "TENON_SANITIZE must be empty, address or thread, it is \"${TENON_SANITIZE}\"")
endif()
target_compile_options(tenon_development INTERFACE ${sanitizers})
target_link_options(tenon_development INTERFACE ${sanitizers})
