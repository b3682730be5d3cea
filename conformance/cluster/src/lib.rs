//! Clusters on demand: one interface through which tests, tasks and people get a Kubernetes API.
//!
//! A [`Provider`] starts a [`Cluster`]; a cluster says how it is reached, and dropping it ends everything that was
//! started for it, also while a panic unwinds. What cannot be dropped, because the program was killed, ends by itself:
//! every process that is started here hangs on a leash that its owner holds.

pub mod access;
pub mod binaries;
pub mod error;
pub mod home;
pub mod leashed;
pub mod local;
pub mod name;
pub mod plane;
pub mod provider;
pub mod registry;
pub mod stop;
pub mod version;

pub use access::{Access, Secret};
pub use error::ClusterError;
pub use home::Home;
pub use local::Local;
pub use name::ProviderName;
pub use provider::{Cluster, Options, Provider};
pub use stop::{Signals, Stop};
pub use version::Version;
