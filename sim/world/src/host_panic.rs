//! Panics of simulated hosts.
//!
//! A panic in a task that a host spawned surfaces only as "a spawned task panicked" where its runtime is driven. So a
//! panic hook records the message and the place where it happens.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

use crate::trace;

thread_local! {
    static IS_RECORDING: Cell<bool> = const { Cell::new(false) };
    static FIRST: RefCell<Option<HostPanic>> = const { RefCell::new(None) };
}

/// Beginning of the message of a panic that a scenario planned.
const PLANNED: &str = "planned panic at ";

/// Panics as a scenario planned. The host has to catch it: only then it is no violation.
pub fn panic_as_planned(place: &str) -> ! {
    panic!("{PLANNED}{place}")
}

/// A panic in a program of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPanic {
    /// Name of the host.
    pub host: String,
    /// Message of the panic.
    pub message: String,
    /// Source file, line and column.
    pub location: String,
}

impl fmt::Display for HostPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {} panicked at {}: {}", self.host, self.location, self.message)
    }
}

/// Runs `body`, which drives hosts, and stops a panic there. Any panic counts, even one that a host catches itself, unless it
/// was planned.
pub fn contain<T>(body: impl FnOnce() -> T) -> Result<T, HostPanic> {
    install_hook();
    FIRST.set(None);
    IS_RECORDING.set(true);
    let result = catch_unwind(AssertUnwindSafe(body));
    IS_RECORDING.set(false);
    match (result, FIRST.take()) {
        (Ok(value), None) => Ok(value),
        (_, Some(panic)) => Err(panic),
        (Err(payload), None) => Err(HostPanic {
            host: trace::current_host(),
            message: message_of(&*payload),
            location: "an unknown place".to_owned(),
        }),
    }
}

/// Returns the text of a panic's payload.
pub fn message_of(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Installs the hook once per process; it calls the one that was there before, which prints the panic.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if message_of(info.payload()).starts_with(PLANNED) {
                return;
            }
            record(info);
            previous(info);
        }));
    });
}

/// Records the first panic only: the runtime panics a second time, without the reason.
fn record(info: &PanicHookInfo<'_>) {
    if !IS_RECORDING.try_with(Cell::get).unwrap_or(false) {
        return;
    }
    FIRST.with(|first| {
        let Ok(mut first) = first.try_borrow_mut() else { return };
        first.get_or_insert_with(|| HostPanic {
            host: trace::current_host(),
            message: message_of(info.payload()),
            location: info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string),
        });
    });
}
