#pragma once

/// Hot thread-locals live in the initial-exec model: one instruction instead of a call, also inside a shared library
/// that the program links at start-up (the space the dynamic loader keeps for libraries opened later suffices too).
#define ABXBUS_TLS thread_local constinit __attribute__((tls_model("initial-exec")))

namespace abxbus::detail {

struct ExecFrame;

/// The innermost handler that runs on this thread; null outside handlers. Saved and restored around nested runs and
/// around each resumption of a coroutine handler.
extern ABXBUS_TLS ExecFrame* current_frame;

}  // namespace abxbus::detail
