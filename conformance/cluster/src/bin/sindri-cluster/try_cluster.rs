//! `try`: starts a cluster, creates a namespace in it, and ends it. The only command that uses an existing cluster.

use sindri_cluster::program::print_line;
use sindri_cluster::{ClusterError, Home, KubeconfigProvider, Namespaces, Provider, ProviderName, Stop};

use crate::flags::{ClusterFlags, KubeconfigFlags};

pub fn try_cluster(
    home: &Home,
    flags: &ClusterFlags,
    existing: &KubeconfigFlags,
    stop: &Stop,
) -> Result<(), ClusterError> {
    let provider: Box<dyn Provider> = match flags.cluster {
        ProviderName::Kubeconfig => Box::new(kubeconfig_provider(existing)?),
        ProviderName::Sim | ProviderName::Local | ProviderName::Container | ProviderName::Kind => {
            flags.provider(home)?
        }
    };
    let mut cluster = provider.start(&flags.options(stop))?;
    print_line(format!("Kubernetes {} ({}) at {}", cluster.version(), provider.name(), cluster.access().server));
    let mut own = Namespaces::new(cluster.access().clone());
    let name = cluster.namespaces().unwrap_or(&mut own).create("sindri-try")?;
    print_line(format!("the namespace {name} was created; it is deleted now"));
    own.delete_all()?;
    cluster.check()
}

fn kubeconfig_provider(flags: &KubeconfigFlags) -> Result<KubeconfigProvider, ClusterError> {
    let missing = || ClusterError::Usage("--cluster kubeconfig needs --kubeconfig, or KUBECONFIG set".to_owned());
    let path = flags.kubeconfig.clone().ok_or_else(missing)?;
    Ok(KubeconfigProvider { path, context: flags.context.clone(), confirmed: flags.yes_use_this_cluster })
}
