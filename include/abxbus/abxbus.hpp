#pragma once

/// Everything a program needs to declare, emit and handle events.

#include <abxbus/context.hpp>
#include <abxbus/describe.hpp>
#include <abxbus/error.hpp>
#include <abxbus/event.hpp>
#include <abxbus/event_bus.hpp>
#include <abxbus/event_handler.hpp>
#include <abxbus/event_history.hpp>
#include <abxbus/event_result.hpp>
#include <abxbus/handler_id.hpp>
#include <abxbus/json_fwd.hpp>
#include <abxbus/log.hpp>
#include <abxbus/memory.hpp>
#include <abxbus/modes.hpp>
#include <abxbus/options.hpp>
#include <abxbus/task.hpp>
#include <abxbus/timestamp.hpp>
#include <abxbus/uuid.hpp>
#include <abxbus/version.hpp>
