//! A cluster that belongs to someone else is used only where that was allowed.

use sindri_cluster::namespaces::LABEL;
use sindri_cluster::{Kubeconfig, Options, Provider};

use crate::life::User;
use crate::support::{Place, refusal, text};

fn get(place_of: &sindri_cluster::Access, path: &str) -> Result<serde_json::Value, u16> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { User::new(place_of).await.get(path).await })
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn nothing_is_done_outside_of_namespaces_that_were_created_and_they_go_at_the_end() {
    let place = Place::new();
    let owner = place.start(Options::default()).unwrap();
    let path = owner.access().kubeconfig.clone();
    let ask = |context: Option<&str>, confirmed| Kubeconfig {
        path: path.clone(),
        context: context.map(str::to_owned),
        confirmed,
    };
    let options = Options::default();
    let words = refusal(ask(None, true).start(&options));
    assert!(words.starts_with("--cluster kubeconfig needs --context;") && words.ends_with("has sindri"), "{words}");
    let words = refusal(ask(Some("production"), true).start(&options));
    assert!(words.contains("has no context \"production\"; it has sindri"), "{words}");
    let words = refusal(ask(Some("sindri"), false).start(&options));
    assert!(words.contains("say --yes-use-this-cluster if it may"), "{words}");

    // The same for people, who type flags.
    let file = path.to_str().unwrap();
    let tried = place.run(&["try", "--cluster", "kubeconfig", "--kubeconfig", file, "--context", "sindri"]);
    assert_eq!(tried.status.code(), Some(2));
    assert!(text(&tried.stderr).contains("say --yes-use-this-cluster if it may"), "{}", text(&tried.stderr));

    let mut guest = ask(Some("sindri"), true).start(&options).unwrap();
    assert_eq!(guest.version(), "v1.35.4");
    let namespaces = guest.namespaces().unwrap();
    let created = namespaces.create("suite").unwrap();
    assert_eq!(namespaces.require(&created).unwrap(), created);
    assert!(namespaces.require("default").unwrap_err().to_string().contains("was not created here"));
    let found = get(owner.access(), &format!("/api/v1/namespaces/{created}")).unwrap();
    assert_eq!(found["metadata"]["labels"][LABEL], "true");
    drop(guest);
    crate::support::until("the namespace to go", || {
        get(owner.access(), &format!("/api/v1/namespaces/{created}")) == Err(404)
    });
    assert!(get(owner.access(), "/api/v1/namespaces/default").is_ok());
}
