#pragma once

/// Forward declarations of every public class, for headers that only pass them on.

namespace abxbus {

class BaseEvent;
template <class T>
class Event;
class EventBus;
class EventBusRef;
class EventHandler;
class EventHistory;
class EventResult;
class EventResults;
class Domain;
class Executor;
class Uuid;
class Timestamp;
template <class T = void>
class task;
template <class T>
class future;

struct EventBusOptions;
struct EventOptions;
struct HandlerOptions;
struct WaitOptions;

namespace detail {
struct BusCore;
struct Entry;
struct EventTypeInfo;
struct HandlerRun;
struct Record;
struct RecordHead;
struct ValueOps;
class Invocation;
class Value;
}  // namespace detail

}  // namespace abxbus
