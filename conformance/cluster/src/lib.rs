//! Clusters on demand: one interface with which tests, tasks and users get a Kubernetes API.
//!
//! A [`Provider`] starts a [`Cluster`]. A cluster has the data to connect to it, and dropping it ends everything that was started
//! for it, also while a panic unwinds. If the program is killed, the processes that it started end by themselves: each watches a
//! pipe or connection that only its owner holds open (`owned_process`).

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
pub mod local;
pub mod name;
pub mod namespaces;
pub mod owned_process;
pub mod plane;
pub mod pool;
pub mod program;
pub mod provider;
pub mod registry;
pub mod sim;
pub mod stop;
pub mod version;
pub mod webhook_server;

pub use access::{Access, Secret};
pub use container::ContainerProvider;
pub use error::ClusterError;
pub use home::Home;
pub use kind::KindProvider;
pub use kubeconfig::KubeconfigProvider;
pub use local::LocalProvider;
pub use name::ProviderName;
pub use namespaces::Namespaces;
pub use pool::{Pool, PooledCluster};
pub use provider::{Cluster, Options, Provider};
pub use sim::SimProvider;
pub use stop::{Signals, Stop};
pub use version::Version;
