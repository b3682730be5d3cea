//! `cargo xtask bench`: runs the benchmarks of each area, and joins their figures in one file.

use std::path::{Path, PathBuf};

use crate::charts;
use crate::postgres::Postgres;
use crate::process::{Run, target};

/// Areas with figures of a broker on PostgreSQL.
const WITH_POSTGRES: [&str; 2] = ["broker", "people"];

/// Measures some areas. The exit code is 0 only if everything could be measured.
pub fn measure(areas: &[&str], json: Option<&str>) -> Result<u8, String> {
    let mut code = 0;
    let mut files = Vec::new();
    for area in areas {
        let file = target().join(format!("figures-{area}.json"));
        // Figures of an earlier run must not be taken for those of this one. The file may be missing.
        let _absent = std::fs::remove_file(&file);
        code = code.max(run(area, &file)?);
        files.push(file);
    }
    match json {
        Some(path) => collect(&files, Path::new(path)).map(|()| code),
        None => Ok(code),
    }
}

fn run(area: &str, file: &Path) -> Result<u8, String> {
    if area == "sim" {
        return Run::built_optimised("sindri-sim").args(["bench", "--json"]).arg(file).code();
    }
    let mut run = Run::built_optimised("sindri-bench").args([area, "--json"]).arg(file);
    if area == "people" {
        match charts::prepare_helm()? {
            Ok(helm) => run = run.arg("--helm").arg(helm),
            Err(reason) => eprintln!("the time of an installation is not measured: {reason}"),
        }
    }
    if !WITH_POSTGRES.contains(&area) {
        return run.code();
    }
    match Postgres::start() {
        Ok(postgres) => run.args(["--postgres-url", &postgres.url()]).code(),
        Err(error) => {
            eprintln!("{error}");
            run.code()
        }
    }
}

/// Writes one list of all figures.
fn collect(files: &[PathBuf], into: &Path) -> Result<(), String> {
    let read = |file: &PathBuf| std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()));
    let texts: Vec<String> = files.iter().map(read).collect::<Result<_, _>>()?;
    std::fs::write(into, join(&texts)).map_err(|error| format!("{}: {error}", into.display()))
}

/// Joins lists in JSON into one list.
fn join(lists: &[String]) -> String {
    let inside = |list: &String| {
        let list = list.trim();
        list.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(list).trim_matches('\n').to_owned()
    };
    let parts: Vec<String> = lists.iter().map(inside).filter(|part| !part.trim().is_empty()).collect();
    format!("[\n{}\n]\n", parts.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_joined_into_one() {
        let lists = ["[\n  1,\n  2\n]\n", "[]\n", "[\n  3\n]\n"].map(str::to_owned);
        assert_eq!(join(&lists), "[\n  1,\n  2,\n  3\n]\n");
    }
}
