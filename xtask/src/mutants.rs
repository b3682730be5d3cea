//! Plants each bug of `sim/mutants` into a copy of the project and sees that the simulation catches it.
//!
//! A mutant is a patch with a few lines before it: what it does, the scenario that catches it, and the first
//! seed with the number of seeds. The copy is built into the project's own target directory, so that what was
//! compiled of other people's crates is used; the binary that this replaces is put back at the end.

use std::path::{Path, PathBuf};

use crate::process::{Run, build, root, target};

struct Mutant {
    name: String,
    patch: PathBuf,
    scenario: String,
    first_seed: String,
    seeds: String,
}

/// True when every planted bug was caught.
pub fn catch_all() -> Result<bool, String> {
    let mutants = read_all()?;
    let tree = target().join("mutants");
    copy_project(&tree)?;
    let mut all = true;
    for mutant in &mutants {
        apply(&tree, mutant, false)?;
        let caught = build_and_run(&tree, mutant);
        apply(&tree, mutant, true)?;
        let caught = caught?;
        println!("{:<40} {}", mutant.name, if caught { "caught" } else { "NOT CAUGHT" });
        all &= caught;
    }
    build(&["sindri-world"])?;
    Ok(all && !mutants.is_empty())
}

fn read_all() -> Result<Vec<Mutant>, String> {
    let directory = root().join("sim/mutants");
    let fail = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(&directory).map_err(fail)?.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "patch"));
    paths.sort();
    paths.into_iter().map(read).collect()
}

fn read(patch: PathBuf) -> Result<Mutant, String> {
    let text = std::fs::read_to_string(&patch).map_err(|error| format!("{}: {error}", patch.display()))?;
    let field = |name: &str| {
        let line = text.lines().take_while(|line| !line.starts_with("diff ")).find_map(|line| line.strip_prefix(name));
        line.map(str::trim).ok_or_else(|| format!("{}: it has no line {name:?}", patch.display()))
    };
    let (first_seed, seeds) =
        field("seeds:")?.split_once(' ').ok_or_else(|| format!("{}: seeds: FIRST COUNT", patch.display()))?;
    let name = patch.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Mutant {
        name,
        scenario: field("scenario:")?.to_owned(),
        first_seed: first_seed.to_owned(),
        seeds: seeds.to_owned(),
        patch: patch.clone(),
    })
}

/// What git tracks or would track: a copy that has nothing of earlier builds in it.
fn copy_project(tree: &Path) -> Result<(), String> {
    let listed = Run::program("git").directory(root()).args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let (_, files) = listed.captured()?;
    for file in files.lines() {
        let (from, to) = (root().join(file), tree.join(file));
        let Ok(content) = std::fs::read(&from) else { continue };
        // An unchanged file keeps its time, so that cargo does not build it again.
        if std::fs::read(&to).is_ok_and(|known| known == content) {
            continue;
        }
        let written = to.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&to, content));
        written.map_err(|error| format!("{}: {error}", to.display()))?;
    }
    Ok(())
}

fn apply(tree: &Path, mutant: &Mutant, reverse: bool) -> Result<(), String> {
    let direction = if reverse { "--reverse" } else { "--forward" };
    let run = Run::program("patch").args(["--strip=1", "--silent", "--no-backup-if-mismatch", direction, "--input"]);
    match run.arg(&mutant.patch).directory(tree).captured()? {
        (0, _) => Ok(()),
        (_, said) => Err(format!("{} does not fit the code any more: {said}", mutant.patch.display())),
    }
}

fn build_and_run(tree: &Path, mutant: &Mutant) -> Result<bool, String> {
    let build = Run::program(env!("CARGO"))
        .directory(tree)
        .env("CARGO_TARGET_DIR", target())
        // The copy lies inside the project, whose settings would be added to its own: these flags count once.
        .env("RUSTFLAGS", "--cfg tokio_unstable");
    let (code, said) =
        build.args(["build", "--quiet", "--release", "--package", "sindri-world", "--bins"]).captured()?;
    if code != 0 {
        return Err(format!("{} does not compile: {said}", mutant.name));
    }
    let run = Run::built("sindri-sim").args(["sim", "--root"]).arg(tree);
    let (code, said) = run
        .args(["--scenario", &mutant.scenario, "--seed", &mutant.first_seed, "--seeds", &mutant.seeds])
        .captured()?;
    // One sentence and a command that replays it, as every failure has.
    let explained =
        said.contains(&format!("{} with seed ", mutant.scenario)) && said.contains("replay: cargo xtask sim");
    let sentence = said.lines().find(|line| line.contains(" with seed ")).unwrap_or(&said);
    println!("  {sentence}");
    Ok(code == 1 && explained)
}
