//! Records what a Kubernetes API server says: its documents, and named exchanges of requests and answers.
//!
//! A recording is a set of files that is the same whenever the same version is asked, because everything that differs
//! from run to run is replaced by a word that says what stood there. Whoever builds something that claims to be an
//! API server plays the same exchanges against it and compares the files.

pub mod answer;
pub mod compare;
pub mod connection;
pub mod documents;
pub mod files;
pub mod library;
pub mod normalise;
pub mod play;
pub mod pointer;
pub mod protobuf;
pub mod recording;
pub mod script;
pub mod server;
pub mod session;
pub mod target;
pub mod template;
