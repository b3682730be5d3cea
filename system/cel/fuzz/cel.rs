//! Feeds arbitrary rules, patterns, times and quantities to the library: no input may cause a panic, and `input.rs` says what
//! every result must satisfy.
#![no_main]

mod input;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| input::check(bytes));
