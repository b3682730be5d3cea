//! Removes a container that nobody can hold on a leash: one that was made and never ran, because whoever made it was killed
//! in between.

use std::io;
use std::process::Command;

use crate::leashed::Leashed;

/// Waits for its input to end. If nobody said that the container is gone, it is removed, again and again for ten seconds:
/// the engine may still be making it.
const SWEEP: &str = r#"
read -r word && [ "$word" = gone ] && exit 0
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  docker rm --force "$1" >/dev/null 2>&1
  sleep 0.5
done
"#;

/// A process that outlives its owner for a moment.
pub(super) struct Broom(Leashed);

impl Broom {
    /// For a container of this name; it is there before the container is.
    pub(super) fn new(container: &str) -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SWEEP, "broom", container]);
        Leashed::start(&mut command).map(Self)
    }

    /// The container was seen gone: there is nothing to sweep.
    pub(super) fn put_away(mut self) {
        let _unheard = self.0.tell("gone");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: &str = "sindri-broom-test";

    fn docker(command: &str) -> String {
        let output = Command::new("/bin/sh").args(["-c", command]).output().expect("there is a shell");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    #[test]
    fn a_container_that_was_made_and_never_ran_is_swept_away_with_its_owner() {
        if docker("docker info >/dev/null 2>&1 && echo yes") != "yes" {
            eprintln!("NOT RUN: no container engine answers");
            return;
        }
        docker(&format!("tar c --files-from /dev/null | docker import - {IMAGE}"));
        let name = crate::directory::fresh_name();
        let made = || docker(&format!("docker ps --all --quiet --filter name={name}"));
        let broom = Broom::new(&name).unwrap();
        docker(&format!("docker create --name {name} {IMAGE} true"));
        assert_ne!(made(), "", "it was made");
        drop(broom);
        assert_eq!(made(), "");
        docker(&format!("docker rmi {IMAGE}"));
    }
}
