//! The script of the Job that creates the keys of the broker, run with a stand-in for kubectl that keeps what it gets.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::process::{Run, root, target};

const SCRIPT: &str = "deploy/charts/sindri-broker/files/create-keys.sh";
/// Prints the Secret if `EXISTING` names one, and creates a file for `create`.
const KUBECTL: &str =
    "#!/bin/sh\ncase $1 in get) printf %s \"$EXISTING\" ;; create) echo \"$@\" > \"$DIRECTORY/created\" ;; esac\n";
/// Characters of the long part of the administrator's key, and of the encryption key.
const LONG_CHARS: usize = 40;
const ENCRYPTION_DIGITS: usize = 64;

/// Checks the keys that the script makes, that its output does not have them, and that an existing Secret is kept.
pub fn check() -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    let mut expect = |is_right: bool, text: &str| {
        if !is_right {
            findings.push(text.to_owned());
        }
    };
    let directory = target().join("helm/keys");
    let (code, output) = run(&directory, "encryption", "")?;
    expect(code == 0, &output);
    let (admin, encryption) = (read(&directory, "admin"), read(&directory, "encryption"));
    let parts: Vec<&str> = admin.trim().split('_').collect();
    let is_key = matches!(parts[..], ["brokkr", short, long] if short.len() == 8 && long.len() == LONG_CHARS);
    expect(is_key, "the administrator's key has another form");
    let is_hex = encryption.len() == ENCRYPTION_DIGITS && encryption.chars().all(|digit| digit.is_ascii_hexdigit());
    expect(is_hex, "the encryption key is not 32 bytes in hex");
    let created = read(&directory, "created");
    expect(created.contains("--from-file=") && created.contains("encryption"), "no Secret is created");
    for key in [parts.last().copied().unwrap_or_default(), &encryption] {
        expect(!output.contains(key) && !created.contains(key), "a key is in the output or in an argument");
    }
    run(&directory, "", "")?;
    expect(read(&directory, "admin") != admin, "the administrator's key is the same a second time");
    expect(!directory.join("encryption").exists(), "an encryption key is made although none is asked for");
    run(&directory, "encryption", "secret/keys")?;
    expect(!directory.join("created").exists(), "a Secret that exists is created again");
    Ok(findings)
}

fn run(directory: &Path, encryption_key: &str, existing: &str) -> Result<(u8, String), String> {
    let fail = |error: std::io::Error| format!("{}: {error}", directory.display());
    // Fails if there was no earlier run.
    let _removed = fs::remove_dir_all(directory);
    let programs = directory.join("bin");
    fs::create_dir_all(&programs).map_err(fail)?;
    let kubectl = programs.join("kubectl");
    fs::write(&kubectl, KUBECTL).map_err(fail)?;
    fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).map_err(fail)?;
    let searched = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(&searched)));
    let path = path.map_err(|error| error.to_string())?;
    let run = Run::program("sh").arg(root().join(SCRIPT)).env("PATH", path).env("DIRECTORY", directory);
    run.env("SECRET", "keys")
        .env("ADMIN_KEY", "admin")
        .env("ENCRYPTION_KEY", encryption_key)
        .env("EXISTING", existing)
        .captured()
}

fn read(directory: &Path, file: &str) -> String {
    fs::read_to_string(directory.join(file)).unwrap_or_default()
}
