# Defines tenon::text, the library with all of its tokenizers, where what it needs is there. Included by
# our own build and by the installed package.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND AND NOT TARGET tenon::text)
  pkg_check_modules(TENON_PCRE2 QUIET IMPORTED_TARGET libpcre2-8>=10.40)
  pkg_check_modules(TENON_UTF8PROC QUIET IMPORTED_TARGET libutf8proc)
  if(TENON_PCRE2_FOUND AND TENON_UTF8PROC_FOUND)
    add_library(tenon_text INTERFACE)
    add_library(tenon::text ALIAS tenon_text)
    target_link_libraries(tenon_text INTERFACE tenon::tenon PkgConfig::TENON_PCRE2 PkgConfig::TENON_UTF8PROC)
    target_compile_definitions(tenon_text INTERFACE TENON_WITH_TEXT PCRE2_CODE_UNIT_WIDTH=8)
  endif()
endif()
