# Compiles SOURCE twice. It starts with
#   // expect: part of the sentence that the first error must contain
#   // flags: compiler flags of the failing compilation (optional)
# With TENON_EXPECT_FAIL defined, and the flags, it must not compile; without both it must. The header
# PRECOMPILED, if given, holds what it includes first; with PRECOMPILE=HEADER that is made ready.
set(compile ${COMPILER} -std=c++20 -Wall -Wextra -I ${INCLUDE})
if(PRECOMPILE)
  execute_process(COMMAND ${compile} -Werror -x c++-header ${PRECOMPILE} -o ${PRECOMPILE}.gch
                  COMMAND_ERROR_IS_FATAL ANY)
  return()
endif()
list(APPEND compile -fsyntax-only)
if(PRECOMPILED)
  list(APPEND compile -Winvalid-pch -include ${PRECOMPILED})
endif()

file(STRINGS ${SOURCE} expect REGEX "^// expect: ")
file(STRINGS ${SOURCE} flags REGEX "^// flags: ")
if(NOT expect)
  message(FATAL_ERROR "${SOURCE} must start with a line `// expect: part of the error message`, it has none")
endif()
string(REPLACE "// expect: " "" expect "${expect}")
string(REPLACE "\\;" ";" expect "${expect}")  # as file(STRINGS) wrote it
string(REPLACE "// flags: " "" flags "${flags}")
separate_arguments(flags UNIX_COMMAND "${flags}")

execute_process(COMMAND ${compile} -Werror ${SOURCE} RESULT_VARIABLE result ERROR_VARIABLE errors)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the positive control must compile, it does not:\n${errors}")
endif()

execute_process(COMMAND ${compile} -D TENON_EXPECT_FAIL ${flags} ${SOURCE}
                RESULT_VARIABLE result ERROR_VARIABLE errors)
if(result EQUAL 0)
  message(FATAL_ERROR "it must not compile, it does; expected the error: ${expect}")
endif()
string(REGEX MATCH "[^\n]*error:[^\n]*" first_error "${errors}")
string(FIND "${first_error}" "${expect}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "the first error must contain: ${expect}\nthe compiler said:\n${errors}")
endif()
message(STATUS "${first_error}")
