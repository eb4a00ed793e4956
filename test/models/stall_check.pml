/* The stall check (lib/dispatch/worker_pool.cpp: submit, arm_stall_check, stall_check): it is armed whenever a job waits
   that no thread was called for.

   Two submitters that skip the wake, a thread that takes jobs at any time or never, and the check on the watchdog's
   thread. At the end of all steps no job waits without an armed check.
   Run: spin -a stall_check.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan
   Result (exhaustive): no error. Variants that fail: -DNO_SECOND_LOOK (the check does not look again after it has
   cleared the mark), -DARM_FIRST (a submitter reads the mark before it counts its job). Give them to spin. */

byte pending, submitted;
bool armed, timer, looking;       /* looking: the check runs */

inline arm() {
  if
  :: armed -> skip
  :: else ->
    atomic { old = armed; armed = true };
    if :: !old -> timer = true :: else fi
  fi
}

proctype submitter() {
  bool old;
  byte n = 0;
  do
  :: n < 2 ->
#ifdef ARM_FIRST
    arm();
    pending++;
#else
    pending++;
    arm();
#endif
    submitted++;
    n++
  :: else -> break
  od
}

proctype worker() {
  byte n = 0;
end: do
  :: n < 3 -> atomic { pending > 0 -> pending-- }; n++
  od
}

proctype check() {
  bool old;
end: do
  :: atomic { timer -> timer = false; looking = true };
    if
    :: pending == 0 ->
      armed = false;
#ifndef NO_SECOND_LOOK
      if :: pending != 0 -> arm() :: else fi
#endif
    :: else -> timer = true  /* calls a thread, comes again */
    fi;
    looking = false
  od
}

init {
  atomic { run submitter(); run submitter(); run worker(); run check() }
  /* everybody is done and the check sleeps, disarmed */
  atomic { submitted == 4 && !timer && !looking -> assert(pending == 0) }
}
