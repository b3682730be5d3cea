//! Generated sequences of requests, played to the simulated server and to a real one.
//!
//! A sequence is an exchange as the recorder knows it ([`sequence`]): data in the same language, played by the same
//! player, normalised by the same code. What is special here is where it comes from ([`compose`]), that both servers
//! are asked now ([`run`]), and that a difference is made as short as it can be ([`shrink`]).

pub mod bad;
pub mod class;
pub mod compose;
pub mod coverage;
pub mod dice;
pub mod ground;
pub mod kinds;
pub mod notation;
pub mod patches;
pub mod report;
pub mod requests;
pub mod run;
pub mod sequence;
pub mod session;
pub mod shrink;
pub mod waiver;
