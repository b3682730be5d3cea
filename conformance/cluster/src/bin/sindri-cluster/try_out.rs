//! `try`: starts a cluster, does something in it, and ends it. The only command that uses someone else's cluster.

use sindri_cluster::program::say;
use sindri_cluster::{ClusterError, Home, Kubeconfig, Namespaces, Provider, ProviderName, Stop};

use crate::{Foreign, Wanted};

pub fn try_out(home: &Home, wanted: &Wanted, foreign: &Foreign, stop: &Stop) -> Result<(), ClusterError> {
    let provider: Box<dyn Provider> = match wanted.cluster {
        ProviderName::Kubeconfig => Box::new(kubeconfig(foreign)?),
        ProviderName::Sim | ProviderName::Local | ProviderName::Container | ProviderName::Kind => {
            wanted.provider(home)?
        }
    };
    let mut cluster = provider.start(&wanted.options(stop))?;
    say(format!("Kubernetes {} ({}) at {}", cluster.version(), provider.name(), cluster.access().server));
    let mut own = Namespaces::new(cluster.access().clone());
    let name = cluster.namespaces().unwrap_or(&mut own).create("sindri-try")?;
    say(format!("the namespace {name} was created; it is deleted now"));
    own.delete_all()?;
    cluster.check()
}

fn kubeconfig(foreign: &Foreign) -> Result<Kubeconfig, ClusterError> {
    let missing = || ClusterError::Mistake("--cluster kubeconfig needs --kubeconfig, or KUBECONFIG set".to_owned());
    let path = foreign.kubeconfig.clone().ok_or_else(missing)?;
    Ok(Kubeconfig { path, context: foreign.context.clone(), confirmed: foreign.yes_use_this_cluster })
}
