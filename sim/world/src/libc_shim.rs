//! Replacements of the libc calls with which code of other crates reads real time and real entropy.
//!
//! Linked into every binary of the simulated world and inactive until a thread activates it: then the clocks of that
//! thread show its virtual time and its entropy comes from its seed. It also catches the timed futex wait of an idle
//! tokio runtime, which reveals the time of the next timer, see [`catch_park`]. Threads that never activate it get the
//! real calls. Linux with glibc, on 64-bit machines.
#![expect(unsafe_code, reason = "defines C symbols and writes through the pointers that C callers pass")]
#![expect(clippy::missing_safety_doc, reason = "each function has exactly the contract of the libc call it replaces")]

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};

use libc::{c_int, c_long, c_void, clockid_t, size_t, ssize_t, timespec, timeval};

use crate::rng::SeededRng;

/// Virtual nanoseconds since the start of a run.
pub type Nanos = u64;

const SECOND: Nanos = 1_000_000_000;
/// Start of the monotonic clock of a run. Not 0: code subtracts durations from instants.
const MONOTONIC_START: Nanos = 1_000 * SECOND;
/// Wall time at the start of every run: 2030-01-01T00:00:00Z.
pub const EPOCH_SECONDS: u64 = 1_893_456_000;

#[derive(Clone, Copy)]
struct Clocks {
    active: bool,
    now: Nanos,
    catching: bool,
    park_deadline: Option<Nanos>,
}

thread_local! {
    static CLOCKS: Cell<Clocks> =
        const { Cell::new(Clocks { active: false, now: 0, catching: false, park_deadline: None }) };
    static ENTROPY: RefCell<Option<SeededRng>> = const { RefCell::new(None) };
}

fn update(change: impl FnOnce(&mut Clocks)) {
    CLOCKS.with(|cell| {
        let mut clocks = cell.get();
        change(&mut clocks);
        cell.set(clocks);
    });
}

/// Makes this thread's clocks and entropy virtual, for as long as the thread lives.
pub fn activate(seed: u64) {
    update(|clocks| *clocks = Clocks { active: true, now: 0, catching: false, park_deadline: None });
    ENTROPY.with_borrow_mut(|entropy| *entropy = Some(SeededRng::new(seed, "libc")));
}

/// Sets this thread's virtual time.
pub fn set_now(now: Nanos) {
    update(|clocks| clocks.now = now);
}

/// Returns this thread's virtual time.
pub fn now() -> Nanos {
    CLOCKS.with(Cell::get).now
}

/// Runs `body` while timed futex waits return at once as if they had timed out. Returns the deadline of the last one too:
/// the instant at which the runtime inside `body` has to be entered again.
pub fn catch_park<T>(body: impl FnOnce() -> T) -> (T, Option<Nanos>) {
    update(|clocks| (clocks.catching, clocks.park_deadline) = (true, None));
    let result = body();
    let deadline = CLOCKS.with(Cell::get).park_deadline;
    update(|clocks| clocks.catching = false);
    (result, deadline)
}

/// Returns true if a park was caught since [`catch_park`] began: the runtime inside it is idle.
pub fn has_caught_park() -> bool {
    CLOCKS.with(Cell::get).park_deadline.is_some()
}

/// Fills the buffer from this thread's seed; returns false if the shim is not active on it.
fn fill(buffer: *mut c_void, length: usize) -> bool {
    let filled = ENTROPY.try_with(|cell| {
        let mut guard = cell.try_borrow_mut().ok()?;
        let dice = guard.as_mut()?;
        if length > 0 {
            // SAFETY: the caller of getrandom promises `length` writable bytes.
            dice.fill(unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) });
        }
        Some(())
    });
    matches!(filled, Ok(Some(())))
}

fn virtual_time(clock: clockid_t) -> Option<timespec> {
    let clocks = CLOCKS.try_with(Cell::get).ok().filter(|clocks| clocks.active)?;
    let nanos = match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => EPOCH_SECONDS * SECOND + clocks.now,
        libc::CLOCK_MONOTONIC | libc::CLOCK_MONOTONIC_RAW | libc::CLOCK_MONOTONIC_COARSE | libc::CLOCK_BOOTTIME => {
            MONOTONIC_START + clocks.now
        }
        _ => return None,
    };
    Some(timespec { tv_sec: (nanos / SECOND) as libc::time_t, tv_nsec: (nanos % SECOND) as c_long })
}

/// Finds the next definition of a symbol after ours, which is libc's.
fn real(slot: &AtomicUsize, name: &std::ffi::CStr) -> usize {
    let known = slot.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: a constant, NUL-terminated name; RTLD_NEXT searches the objects after this one.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize;
    slot.store(found, Ordering::Relaxed);
    found
}

static REAL_SYSCALL: AtomicUsize = AtomicUsize::new(0);
static REAL_CLOCK_GETTIME: AtomicUsize = AtomicUsize::new(0);

type Syscall = unsafe extern "C" fn(c_long, ...) -> c_long;
type ClockGettime = unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int;

unsafe fn real_syscall(number: c_long, arguments: [usize; 6]) -> c_long {
    let address = real(&REAL_SYSCALL, c"syscall");
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: libc's own `syscall`, called with what our caller passed.
    unsafe { std::mem::transmute::<usize, Syscall>(address)(number, a, b, c, d, e, f) }
}

/// Replaces libc's `getrandom`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut c_void, length: size_t, flags: libc::c_uint) -> ssize_t {
    if fill(buffer, length) {
        return length as ssize_t;
    }
    // SAFETY: passes on what our caller promised.
    unsafe { real_syscall(libc::SYS_getrandom, [buffer as usize, length, flags as usize, 0, 0, 0]) as ssize_t }
}

/// Replaces libc's `getentropy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getentropy(buffer: *mut c_void, length: size_t) -> c_int {
    // SAFETY: passes on what our caller promised.
    if length <= 256 && unsafe { getrandom(buffer, length, 0) } == length as ssize_t { 0 } else { -1 }
}

/// Replaces libc's `syscall`: std waits on futexes with it, and some crates read entropy with it.
///
/// C declares it variadic; on 64-bit Linux the caller passes up to six words in registers either way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long {
    if number == libc::SYS_futex && is_timed_wait(b, d) && catch(d as *const timespec) {
        // SAFETY: glibc's errno of this thread.
        unsafe { *libc::__errno_location() = libc::ETIMEDOUT };
        return -1;
    }
    if number == libc::SYS_getrandom && fill(a as *mut c_void, b) {
        return b as c_long;
    }
    // SAFETY: passes on what our caller promised.
    unsafe { real_syscall(number, [a, b, c, d, e, f]) }
}

/// Returns true for a wait with a deadline. One without is contention for a lock with another thread, and really waits.
fn is_timed_wait(operation: usize, timeout: usize) -> bool {
    let flags = (libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) as usize;
    operation & !flags == libc::FUTEX_WAIT_BITSET as usize && timeout != 0
}

fn catch(deadline: *const timespec) -> bool {
    let catching = CLOCKS.try_with(Cell::get).is_ok_and(|clocks| clocks.active && clocks.catching);
    if catching {
        // SAFETY: std passes a valid absolute time on the monotonic clock with a timed wait.
        let deadline = unsafe { *deadline };
        let nanos = deadline.tv_sec as Nanos * SECOND + deadline.tv_nsec as Nanos;
        update(|clocks| clocks.park_deadline = Some(nanos.saturating_sub(MONOTONIC_START)));
    }
    catching
}

/// Replaces libc's `clock_gettime`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    if let Some(now) = virtual_time(clock) {
        // SAFETY: the caller promises a writable timespec.
        unsafe { time.write(now) };
        return 0;
    }
    let address = real(&REAL_CLOCK_GETTIME, c"clock_gettime");
    // SAFETY: libc's own function, called with what our caller passed.
    unsafe { std::mem::transmute::<usize, ClockGettime>(address)(clock, time) }
}

/// Replaces libc's `gettimeofday`, which SQLite calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut timeval, _zone: *mut c_void) -> c_int {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a local timespec, and what our caller promised to be writable.
    unsafe {
        let result = clock_gettime(libc::CLOCK_REALTIME, &mut now);
        if !time.is_null() {
            time.write(timeval { tv_sec: now.tv_sec, tv_usec: now.tv_nsec / 1_000 });
        }
        result
    }
}

/// Replaces libc's `time`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(out: *mut libc::time_t) -> libc::time_t {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a local timespec, and what our caller promised to be writable.
    unsafe {
        clock_gettime(libc::CLOCK_REALTIME, &mut now);
        if !out.is_null() {
            out.write(now.tv_sec);
        }
    }
    now.tv_sec
}
