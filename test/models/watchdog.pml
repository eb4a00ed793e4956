/* The watchdog's promise (lib/dispatch/watchdog.cpp, timer_heap.hpp): no deadline and no timer is slept through.

   Two executors start handlers with deadlines 1 or 2 ticks ahead, a third party arms two timers; time moves at any
   point, also within a scan. Whenever the watchdog sleeps without a kick on its way, it sleeps no longer than to the
   deadline of any handler whose start is complete, and to any timer that is armed.
   Run: spin -a watchdog.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
   Result (exhaustive): no error. Variants that fail: -DNO_PROMISE (next_look is not written before the scan),
   -DKEEP_PROMISE (quiet is believed after a scan under a promise), -DREAD_FIRST (an executor reads next_look before it
   publishes), -DPLAN_OUTSIDE (the sleep is computed before the lock of the timers is taken). Give them to spin. */

#define MAX 99
#define LAST 4                     /* time ends here */
#define INTERVAL 2
#define min(a, b) (a < b -> a : b)

byte now_;                         /* the time */
bool running[2];                   /* ExecSlot::word */
byte generation[2], deadline[2] = MAX;
bool started[2];                   /* the start is complete: next_look was read, the kick sent if needed */
byte next_look = MAX;
bool kicked;
byte timer = MAX, planned = MAX;   /* under the mutex: the timer steps are atomic */
bool armed_;                       /* the arming party has sent its kick if needed */
bool asleep;
byte sleep_until = MAX;

proctype executor(byte s) {
  byte runs = 0, seen, d;
  do
  :: runs < 2 ->
    if :: d = now_ + 1 :: d = now_ + 2 fi;
    deadline[s] = d;
#ifdef READ_FIRST
    seen = next_look;
    atomic { running[s] = true; generation[s]++ };
#else
    atomic { running[s] = true; generation[s]++ };
    seen = next_look;
#endif
    atomic { if :: d < seen -> kicked = true :: else fi; started[s] = true };
    runs++;
    if
    :: atomic { started[s] = false; running[s] = false }  /* returned, or was taken by the watchdog */
    :: break                                              /* never returns by itself */
    fi
  :: else -> break
  od
}

proctype armer() {
  byte due;
  bool wake;
  byte count = 0;
  do
  :: count < 2 && timer == MAX ->
    if :: due = now_ + 1 :: due = now_ + 3 fi;
    atomic { timer = due; wake = (due < planned); armed_ = !wake };
    if :: wake -> atomic { kicked = true; armed_ = true } :: else fi;
    count++
  :: count == 2 -> break
  :: now_ == LAST -> break
  od
}

proctype watchdog() {
  byte now, promise, look, earliest, d, before[2], i;
  bool moved, busy, quiet = true;
  do
  :: kicked = false;
    now = now_;
    promise = (quiet -> MAX : now + INTERVAL);
#ifndef NO_PROMISE
    next_look = promise;
#endif
    atomic { if :: timer <= now -> timer = MAX; armed_ = false :: else fi };
    moved = false;
    earliest = MAX;
    i = 0;
    do
    :: i < 2 ->
      atomic { busy = running[i]; d = generation[i] };
      if
      :: !busy -> moved = (moved || before[i] != d); before[i] = d
      :: else ->
        before[i] = d;
        d = deadline[i];
        if
        :: d <= now -> moved = true;
          atomic { if :: running[i] && before[i] == generation[i] -> running[i] = false; started[i] = false :: else fi }
        :: else -> earliest = min(earliest, d)
        fi
      fi;
      i++
    :: else -> break
    od;
    quiet = (!moved && earliest == MAX);
    if
    :: quiet -> look = MAX
    :: else -> look = min(earliest, now + INTERVAL); look = min(look, promise)
    fi;
#ifndef KEEP_PROMISE
    if
    :: look == MAX && promise != MAX -> goto again
    :: else
    fi;
#endif
    next_look = look;
#ifdef PLAN_OUTSIDE
    d = min(look, timer);
    planned = d;
#else
    atomic { planned = min(look, timer); d = planned };
#endif
    atomic { sleep_until = d; asleep = true };
end: atomic { (kicked || now_ >= sleep_until) -> asleep = false };
again: skip
  od
}

proctype time() {
end: do :: now_ < LAST -> now_++ od
}

proctype monitor() {
end:
  atomic {
    asleep && !kicked && now_ < sleep_until &&
      ((started[0] && running[0] && deadline[0] < sleep_until) ||
       (started[1] && running[1] && deadline[1] < sleep_until) ||
       (armed_ && timer < sleep_until)) ->
      assert(false)
  }
}

init {
  atomic { run executor(0); run executor(1); run armer(); run watchdog(); run time(); run monitor() }
}
