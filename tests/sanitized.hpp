// TENON_SANITIZED is defined in builds with a sanitizer: processor time and heap there are not the
// library's own. GCC has macros for it, clang features.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TENON_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TENON_SANITIZED
#endif
#endif
