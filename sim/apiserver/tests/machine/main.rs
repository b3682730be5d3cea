//! Black-box tests of the API server: requests and time go in, responses, watch events and the journal come out.

mod access;
mod admin;
mod apply;
mod bootstrap;
mod discovery;
mod errors;
mod faults;
mod front;
mod garbage_collection;
mod harness;
mod kubectl;
mod lifecycle;
mod lists;
mod persistence;
mod pods;
mod protobuf;
mod quotas;
mod random;
mod stand_in;
mod stateful_sets_and_jobs;
mod subresources;
mod watches;
mod webhook_port;
mod webhooks;
mod workloads;
mod writes;
