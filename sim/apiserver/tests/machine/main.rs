//! The machine seen from outside: what goes in, what comes out, and what the journal says.

mod access;
mod admin;
mod apply;
mod discovery;
mod errors;
mod faults;
mod front;
mod harness;
mod kubectl;
mod lifecycle;
mod lists;
mod messages;
mod owners;
mod parts;
mod random;
mod sets;
mod stand_in;
mod watches;
mod workloads;
mod writes;
