//! `cargo xtask images`: an image of each program, as an OCI archive, which engines load.
//!
//! An image has no base: one static binary, licences, certificate authorities, a user, and directories that the program may write to.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::archive::{Owner, append, compress, compute_sha256, write_tar};
use super::binaries::{BINARIES, Built, build, prepare_directory, version};
use super::files::{copy, fail, make_directory, megabytes, write};
use super::licences::make_licences;
use super::shipped_crates::list_shipped_crates;
use crate::packages::exists;
use crate::process::{Run, root as project};

/// User and group of the programs.
const USER: u32 = 65532;
/// Data of the broker; a volume that is mounted there belongs to the user.
const DATA: &str = "var/lib/sindri";
/// Certificate authorities that this machine trusts: an image has no others.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Licences of the program and of what it contains.
const LICENCES: &str = "usr/share/licenses/sindri";
const MEGABYTES_MAX: f64 = 20.0;
/// Programs that load images, in the order in which they are tried.
const ENGINES: [&str; 2] = ["docker", "podman"];

/// Builds the images, and loads them into an engine if there is one. The exit code is 0 only if each is small enough.
pub fn make_images() -> Result<u8, String> {
    let built = build()?;
    let directory = prepare_directory("images")?;
    let licences = make_licences(&list_shipped_crates(built.architecture.triple)?)?;
    let engine = ENGINES.into_iter().find(|engine| is_running(engine));
    let mut code = 0;
    for (name, about) in BINARIES {
        let archive = make_image(&built, name, about, &licences, &directory)?;
        let size = megabytes(&archive)?;
        println!("{name:<18} {size:>5.1} MB  {}", archive.display());
        if size > MEGABYTES_MAX {
            println!("{name}: more than {MEGABYTES_MAX} MB");
            code = 1;
        }
        if let Some(engine) = engine {
            load(engine, &archive)?;
        }
    }
    match engine {
        Some(engine) => println!("loaded into {engine} with the tag {}", version()),
        None => println!("no engine is running ({}): load the archives where one is", ENGINES.join(", ")),
    }
    Ok(code)
}

/// Returns true if the daemon of an engine responds.
fn is_running(engine: &str) -> bool {
    exists(engine) && Run::program(engine).arg("info").captured().is_ok_and(|(code, _)| code == 0)
}

fn load(engine: &str, archive: &Path) -> Result<(), String> {
    match Run::program(engine).args(["load", "--input"]).arg(archive).captured()? {
        (0, _) => Ok(()),
        (_, output) => Err(format!("{engine} load {}: {}", archive.display(), output.trim())),
    }
}

/// Makes the archive of one image.
fn make_image(built: &Built, name: &str, about: &str, licences: &str, directory: &Path) -> Result<PathBuf, String> {
    let root = directory.join(name).join("root");
    make_root(&root, &built.directory.join(name), name)?;
    copy(&project().join("LICENSE"), &root.join(LICENCES).join("LICENSE"), 0o644)?;
    write(&root.join(LICENCES).join("THIRD-PARTY-LICENSES.txt"), licences)?;
    let layout = directory.join(name).join("layout");
    let blobs = Blobs { directory: layout.join("blobs/sha256") };
    let layer = directory.join(name).join("layer.tar");
    let entries: &[&str] = if Path::new(AUTHORITIES).exists() { &["etc", "usr"] } else { &["usr", "etc/passwd"] };
    write_tar(&root, entries, Owner::Root, &built.committed, &layer)?;
    append(&root, &["tmp", "var"], Owner::Program(USER), &built.committed, &layer)?;
    let diff_id = format!("sha256:{}", compute_sha256(&layer)?);
    compress(&layer)?;
    let layer = blobs.add_file(&layer.with_extension("tar.gz"), "application/vnd.oci.image.layer.v1.tar+gzip")?;
    let config = describe(built, name, about, &diff_id)?;
    let config = blobs.add(&config, "application/vnd.oci.image.config.v1+json")?;
    let manifest_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({"schemaVersion": 2, "mediaType": manifest_type, "config": config, "layers": [layer]});
    let mut manifest = blobs.add(&manifest, manifest_type)?;
    // Docker and containerd read the first, others the second.
    manifest["annotations"] = json!({
        "io.containerd.image.name": format!("docker.io/library/{name}:{}", version()),
        "org.opencontainers.image.ref.name": version(),
    });
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest],
    });
    write(&layout.join("index.json"), index.to_string())?;
    // Versions of Docker before 25 read this instead.
    let path = |blob: &Value| blob["digest"].as_str().unwrap_or_default().replace("sha256:", "blobs/sha256/");
    let for_docker = json!([{
        "Config": path(&config), "RepoTags": [format!("{name}:{}", version())], "Layers": [path(&layer)],
    }]);
    write(&layout.join("manifest.json"), for_docker.to_string())?;
    write(&layout.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string())?;
    let archive = directory.join(format!("{name}-{}-{}.oci.tar", version(), built.architecture.in_images));
    write_tar(
        &layout,
        &["oci-layout", "index.json", "manifest.json", "blobs"],
        Owner::Root,
        &built.committed,
        &archive,
    )?;
    let parts = directory.join(name);
    std::fs::remove_dir_all(&parts).map_err(fail(&parts))?;
    Ok(archive)
}

/// Makes the files of an image.
fn make_root(root: &Path, binary: &Path, name: &str) -> Result<(), String> {
    copy(binary, &root.join("usr/bin").join(name), 0o755)?;
    write(&root.join("etc/passwd"), format!("sindri:x:{USER}:{USER}::/{DATA}:/sbin/nologin\n"))?;
    if Path::new(AUTHORITIES).exists() {
        copy(Path::new(AUTHORITIES), &root.join(AUTHORITIES.trim_start_matches('/')), 0o644)?;
    }
    make_directory(&root.join("tmp"), 0o1777)?;
    make_directory(&root.join(DATA), 0o700)
}

/// Makes the description of an image.
fn describe(built: &Built, name: &str, about: &str, diff_id: &str) -> Result<Value, String> {
    Ok(json!({
        "architecture": built.architecture.in_images,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Entrypoint": [name],
            "Env": ["PATH=/usr/bin"],
            "WorkingDir": "/",
            "Labels": {
                "org.opencontainers.image.title": name,
                "org.opencontainers.image.description": about,
                "org.opencontainers.image.version": version(),
                "org.opencontainers.image.revision": built.commit,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
    }))
}

/// The blobs of an image layout; each is named by its digest.
struct Blobs {
    directory: PathBuf,
}

impl Blobs {
    /// Adds a document; returns its descriptor.
    fn add(&self, document: &Value, media_type: &str) -> Result<Value, String> {
        let file = self.directory.with_extension("document");
        write(&file, document.to_string())?;
        self.add_file(&file, media_type)
    }

    /// Moves a file to the blobs; returns its descriptor.
    fn add_file(&self, file: &Path, media_type: &str) -> Result<Value, String> {
        let digest = compute_sha256(file)?;
        let size = std::fs::metadata(file).map_err(fail(file))?.len();
        make_directory(&self.directory, 0o755)?;
        std::fs::rename(file, self.directory.join(&digest)).map_err(fail(file))?;
        Ok(json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(program: &str, arguments: &[&str]) -> String {
        Run::program(program).args(arguments).captured().unwrap().1
    }

    #[test]
    fn an_image_is_complete_and_its_digests_are_those_of_its_blobs() {
        let directory = std::env::temp_dir().join(format!("sindri-images-{}", std::process::id()));
        write(&directory.join("built/sindri"), "the program").unwrap();
        let built = Built::for_tests(&directory.join("built"));
        let archive = make_image(&built, "sindri", "A program.", "licences of others", &directory).unwrap();
        let tar = archive.to_str().unwrap();
        let index: Value = serde_json::from_str(&run("tar", &["-xOf", tar, "index.json"])).unwrap();
        let read = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap().trim_start_matches("sha256:").to_owned();
            let file = directory.join("blob");
            let extract = format!("tar -xOf {tar} blobs/sha256/{digest} > {}", file.display());
            run("sh", &["-c", &extract]);
            assert_eq!(compute_sha256(&file).unwrap(), digest);
            file
        };
        let json = |file: PathBuf| -> Value { serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap() };
        let manifest = json(read(&index["manifests"][0]));
        let config = json(read(&manifest["config"]));
        assert_eq!(config["config"]["User"], "65532:65532");
        let layer = read(&manifest["layers"][0]);
        let files = run("tar", &["-tvzf", layer.to_str().unwrap(), "--numeric-owner"]);
        std::fs::remove_dir_all(&directory).unwrap();
        for (mode, owner, name) in [
            ("-rwxr-xr-x", "0/0", "usr/bin/sindri"),
            ("-rw-r--r--", "0/0", "usr/share/licenses/sindri/THIRD-PARTY-LICENSES.txt"),
            ("drwx------", "65532/65532", "var/lib/sindri/"),
            ("drwxrwxrwt", "65532/65532", "tmp/"),
        ] {
            let found =
                files.lines().any(|line| line.starts_with(mode) && line.contains(owner) && line.ends_with(name));
            assert!(found, "{mode} {owner} {name}:\n{files}");
        }
    }
}
