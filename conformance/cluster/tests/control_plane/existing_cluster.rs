//! An existing cluster is used only with the user's confirmation, and only in namespaces of its own.

use sindri_cluster::namespaces::LABEL;
use sindri_cluster::{KubeconfigProvider, Options, Provider};

use crate::support::{TestHome, start_error, text};
use crate::usage::User;

fn get(access: &sindri_cluster::Access, path: &str) -> Result<serde_json::Value, u16> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { User::new(access).await.get(path).await })
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn only_namespaces_that_were_created_are_used_and_they_are_deleted_at_the_end() {
    let home = TestHome::new();
    let owner = home.start(Options::default()).unwrap();
    let path = owner.access().kubeconfig.clone();
    let provider = |context: Option<&str>, confirmed| KubeconfigProvider {
        path: path.clone(),
        context: context.map(str::to_owned),
        confirmed,
    };
    let options = Options::default();
    let message = start_error(provider(None, true).start(&options));
    assert!(
        message.starts_with("--cluster kubeconfig needs --context;") && message.ends_with("has sindri"),
        "{message}"
    );
    let message = start_error(provider(Some("production"), true).start(&options));
    assert!(message.contains("has no context \"production\"; it has sindri"), "{message}");
    let message = start_error(provider(Some("sindri"), false).start(&options));
    assert!(message.contains("confirm it with --yes-use-this-cluster"), "{message}");

    // The same with the command.
    let file = path.to_str().unwrap();
    let tried = home.run(&["try", "--cluster", "kubeconfig", "--kubeconfig", file, "--context", "sindri"]);
    assert_eq!(tried.status.code(), Some(2));
    assert!(text(&tried.stderr).contains("confirm it with --yes-use-this-cluster"), "{}", text(&tried.stderr));

    let mut existing = provider(Some("sindri"), true).start(&options).unwrap();
    assert_eq!(existing.version(), "v1.35.4");
    let namespaces = existing.namespaces().unwrap();
    let created = namespaces.create("suite").unwrap();
    assert_eq!(namespaces.require(&created).unwrap(), created);
    assert!(namespaces.require("default").unwrap_err().to_string().contains("was not created here"));
    let found = get(owner.access(), &format!("/api/v1/namespaces/{created}")).unwrap();
    assert_eq!(found["metadata"]["labels"][LABEL], "true");
    drop(existing);
    crate::support::wait_until("the namespace to go", || {
        get(owner.access(), &format!("/api/v1/namespaces/{created}")) == Err(404)
    });
    assert!(get(owner.access(), "/api/v1/namespaces/default").is_ok());
}
