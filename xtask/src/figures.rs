//! `cargo xtask bench`: runs what measures each area, and puts their figures into one file.

use std::path::{Path, PathBuf};

use crate::postgres::Postgres;
use crate::process::{Run, target};

/// Measures some areas; the exit code is 0 only if everything could be measured.
pub fn measure(areas: &[&str], json: Option<&str>) -> Result<u8, String> {
    let mut code = 0;
    let mut files = Vec::new();
    for area in areas {
        let file = target().join(format!("figures-{area}.json"));
        // Figures of an earlier run are not this one's; the file may well not be there.
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
    match area {
        "sim" => return Run::built("sindri-sim").args(["bench", "--json"]).arg(file).code(),
        "apiserver" => return Run::built("sindri-bench-apiserver").arg("--json").arg(file).code(),
        "cluster" => return Run::built("sindri-record").args(["bench", "--json"]).arg(file).code(),
        "agent" => return Run::built("sindri-conformance").args(["bench-agent", "--json"]).arg(file).code(),
        _ => {}
    }
    let run = Run::built("sindri-conformance").args(["bench-broker", "--json"]).arg(file);
    match Postgres::start() {
        Ok(postgres) => run.args(["--postgres-url", &postgres.url()]).code(),
        Err(error) => {
            eprintln!("{error}");
            run.code()
        }
    }
}

/// One list of all figures.
fn collect(files: &[PathBuf], into: &Path) -> Result<(), String> {
    let read = |file: &PathBuf| std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()));
    let texts: Vec<String> = files.iter().map(read).collect::<Result<_, _>>()?;
    std::fs::write(into, joined(&texts)).map_err(|error| format!("{}: {error}", into.display()))
}

/// Lists in JSON as one list.
fn joined(lists: &[String]) -> String {
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
    fn lists_become_one_list() {
        let lists = ["[\n  1,\n  2\n]\n", "[]\n", "[\n  3\n]\n"].map(str::to_owned);
        assert_eq!(joined(&lists), "[\n  1,\n  2,\n  3\n]\n");
    }
}
