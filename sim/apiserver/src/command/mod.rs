//! Entry points of the program: under its own name, and as a stand-in for `kube-apiserver` and `etcd`.

mod assets;
mod certificate_subject;
mod certificates;
mod data_file;
pub(crate) mod etcd;
mod files;
mod flags;
mod kubeconfig;
mod run;
mod serve;
pub(crate) mod stand_in;

pub(crate) use assets::AssetsCommand;
pub(crate) use files::StartError;
pub(crate) use serve::ServeCommand;
