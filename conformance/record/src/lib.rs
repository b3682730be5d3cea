//! Records a Kubernetes API server: its discovery and OpenAPI documents, and named exchanges of requests and responses.
//!
//! A recording is a set of files that is the same for every run with the same version, because everything that differs from run
//! to run is replaced by a placeholder. A simulated API server is tested by running the same exchanges with it and comparing the
//! results.

pub mod compare;
pub mod connection;
pub mod documents;
pub mod files;
mod initial_objects;
pub mod library;
pub mod normalise;
pub mod pointer;
pub mod protobuf;
pub mod recording;
pub mod response;
pub mod script;
pub mod script_runner;
pub mod server;
pub mod session;
pub mod target;
pub mod template;
pub mod webhook;
