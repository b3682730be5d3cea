//! Clusters on demand: one interface through which tests, tasks and people get a Kubernetes API.
//!
//! A [`Provider`] starts a [`Cluster`]; a cluster says how it is reached, and dropping it ends everything that was
//! started for it, also while a panic unwinds. What cannot be dropped, because the program was killed, ends by itself:
//! every process that is started here hangs on a leash that its owner holds.

pub mod access;
pub mod binaries;
mod client;
pub mod container;
mod directory;
pub mod error;
pub mod home;
pub mod kind;
pub mod kubeconfig;
mod kubeconfig_file;
pub mod leashed;
pub mod local;
pub mod name;
pub mod namespaces;
pub mod plane;
pub mod pool;
pub mod program;
pub mod provider;
pub mod registry;
pub mod sim;
pub mod stop;
pub mod version;

pub use access::{Access, Secret};
pub use container::Container;
pub use error::ClusterError;
pub use home::Home;
pub use kind::Kind;
pub use kubeconfig::Kubeconfig;
pub use local::Local;
pub use name::ProviderName;
pub use namespaces::Namespaces;
pub use pool::{Pool, Pooled};
pub use provider::{Cluster, Options, Provider};
pub use sim::Sim;
pub use stop::{Signals, Stop};
pub use version::Version;
