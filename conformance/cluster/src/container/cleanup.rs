//! Removes a container that was created but never started, because this program was killed in between. Such a container has no
//! connection to watch (`keep_alive`).

use std::io;
use std::process::Command;

use crate::owned_process::OwnedProcess;

/// Waits until stdin is closed. Unless `gone` was written to it, removes the container, repeatedly for ten seconds: the engine
/// may still be creating it.
const SCRIPT: &str = r#"
read -r word && [ "$word" = gone ] && exit 0
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  docker rm --force "$1" >/dev/null 2>&1
  sleep 0.5
done
"#;

/// Process that removes a container after the end of this program.
pub(super) struct ContainerCleanup(OwnedProcess);

impl ContainerCleanup {
    /// Starts the process for a container of this name, before the container is created.
    pub(super) fn start(container: &str) -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "cleanup", container]);
        OwnedProcess::start(&mut command).map(Self)
    }

    /// Cancels the removal, because the container is gone.
    pub(super) fn cancel(mut self) {
        let _ended = self.0.write_line("gone");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: &str = "sindri-cleanup-test";

    fn docker(command: &str) -> String {
        let output = Command::new("/bin/sh").args(["-c", command]).output().expect("there is a shell");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    #[test]
    fn a_container_that_was_created_and_never_started_is_removed_with_its_owner() {
        if docker("docker info >/dev/null 2>&1 && echo yes") != "yes" {
            eprintln!("NOT RUN: no container engine responds");
            return;
        }
        docker(&format!("tar c --files-from /dev/null | docker import - {IMAGE}"));
        let name = crate::directory::unique_name();
        let found = || docker(&format!("docker ps --all --quiet --filter name={name}"));
        let cleanup = ContainerCleanup::start(&name).unwrap();
        docker(&format!("docker create --name {name} {IMAGE} true"));
        assert_ne!(found(), "", "it was created");
        drop(cleanup);
        assert_eq!(found(), "");
        docker(&format!("docker rmi {IMAGE}"));
    }
}
