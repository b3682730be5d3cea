//! The ways to start the program: by its own name, and by the names of those it stands in for.

mod certificates;
pub(crate) mod etcd;
mod files;
mod flags;
mod kubeconfig;
mod run;
mod serve;
pub(crate) mod stand_in;

pub(crate) use files::StartError;
pub(crate) use serve::Serve;
