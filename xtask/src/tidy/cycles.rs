//! Import cycles between the modules of one crate.
//!
//! In each folder the children, each with everything below it, and the folder's own `mod.rs` must import each other in one
//! direction only. A name that a module re-exports counts as an import of the module that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::imports::{self, Import};

type Module = Vec<String>;
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Re-exports that lead to each other end the search after so many steps.
const REEXPORTS_MAX: usize = 16;

/// Cycles of the crate whose root file is in `directory`.
pub fn check(
    directory: &Path,
    files: &[PathBuf],
    read: impl Fn(&Path) -> Result<String, String>,
) -> Result<Vec<Finding>, String> {
    let mut modules: BTreeMap<Module, Vec<Import>> = BTreeMap::new();
    for file in files {
        let Some(module) = module(directory, file) else { continue };
        let imports = imports::read(&read(file)?).map_err(|error| format!("{}: {error}", file.display()))?;
        modules.entry(module).or_default().extend(imports);
    }
    let edges = edges(&modules);
    let folders: BTreeSet<&[String]> =
        modules.keys().flat_map(|module| (0..module.len()).map(|depth| &module[..depth])).collect();
    let mut findings = Vec::new();
    for folder in folders {
        let (graph, reasons) = graph(folder, &edges);
        for cycle in cycles(&graph) {
            let place = directory.join(folder.join("/")).display().to_string();
            findings.push(Finding { place, message: describe(&cycle, &reasons) });
        }
    }
    Ok(findings)
}

/// The module of a file: none if it belongs to another crate.
fn module(directory: &Path, file: &Path) -> Option<Module> {
    let path = file.strip_prefix(directory).ok()?.with_extension("");
    let mut module: Module = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if module.first().is_some_and(|first| first == "bin") && module.len() > 1 {
        return None;
    }
    if module.last().is_some_and(|last| last == "mod") || matches!(module.as_slice(), [only] if is_root(only)) {
        module.pop();
    }
    Some(module)
}

fn is_root(name: &str) -> bool {
    name == "lib" || name == "main"
}

/// Pairs of modules of which the first imports from the second.
fn edges(modules: &BTreeMap<Module, Vec<Import>>) -> BTreeSet<(Module, Module)> {
    let mut edges = BTreeSet::new();
    for (module, imports) in modules {
        for import in imports {
            let imported = resolve(modules, module, import).filter(|imported| imported != module);
            edges.extend(imported.map(|imported| (module.clone(), imported)));
        }
    }
    edges
}

/// The module that defines what is imported; none for other crates.
fn resolve(modules: &BTreeMap<Module, Vec<Import>>, module: &[String], import: &Import) -> Option<Module> {
    let mut path = absolute(modules, module, import)?;
    for _ in 0..REEXPORTS_MAX {
        let mut rest = Vec::new();
        while !path.is_empty() && !modules.contains_key(&path) {
            rest.insert(0, path.pop()?);
        }
        let Some(name) = rest.first() else { return Some(path) };
        let exported = modules
            .get(&path)?
            .iter()
            .find(|export| export.is_exported && export.inside.is_empty() && export.name == *name && *export != import);
        let Some(next) = exported.and_then(|export| absolute(modules, &path, export)) else { return Some(path) };
        path = next;
        path.extend(rest.drain(1..));
    }
    Some(path)
}

/// The imported path from the crate's root.
fn absolute(modules: &BTreeMap<Module, Vec<Import>>, module: &[String], import: &Import) -> Option<Module> {
    let mut base: Module = module.iter().chain(&import.inside).cloned().collect();
    let mut segments = import.segments.iter();
    let first = segments.next()?;
    match first.as_str() {
        "crate" => base.clear(),
        "self" => {}
        "super" => drop(base.pop()),
        child => {
            base.push(child.to_owned());
            if !modules.contains_key(&base) {
                return None;
            }
        }
    }
    for segment in segments {
        match segment.as_str() {
            "super" => drop(base.pop()),
            "*" => {}
            name => base.push(name.to_owned()),
        }
    }
    Some(base)
}

/// Imports between the children of a folder, and for each of them one that causes it.
fn graph(folder: &[String], edges: &BTreeSet<(Module, Module)>) -> (Graph, BTreeMap<(String, String), String>) {
    let (mut graph, mut reasons) = (Graph::new(), BTreeMap::new());
    let own = if folder.is_empty() { "the crate's root" } else { "mod.rs" };
    let child = |module: &Module| module.get(folder.len()).cloned().unwrap_or_else(|| own.to_owned());
    for (from, to) in edges.iter().filter(|(from, to)| from.starts_with(folder) && to.starts_with(folder)) {
        let (importer, imported) = (child(from), child(to));
        if importer != imported {
            graph.entry(imported.clone()).or_default();
            graph.entry(importer.clone()).or_default().insert(imported.clone());
            reasons.entry((importer, imported)).or_insert_with(|| format!("{} uses {}", shown(from), shown(to)));
        }
    }
    (graph, reasons)
}

/// A module as its path from the crate's root.
fn shown(module: &Module) -> String {
    if module.is_empty() { "the root".to_owned() } else { module.join("::") }
}

/// Groups of nodes that reach each other.
fn cycles(graph: &Graph) -> Vec<Vec<String>> {
    let reachable: BTreeMap<&String, BTreeSet<&String>> = graph.keys().map(|node| (node, reach(graph, node))).collect();
    let mut cycles: Vec<Vec<String>> = Vec::new();
    for node in graph.keys().filter(|node| reachable[node].contains(node)) {
        if cycles.iter().any(|cycle| cycle.contains(node)) {
            continue;
        }
        let members = graph.keys().filter(|other| reachable[node].contains(other) && reachable[other].contains(node));
        cycles.push(members.cloned().collect());
    }
    cycles
}

fn reach<'a>(graph: &'a Graph, node: &str) -> BTreeSet<&'a String> {
    let (mut seen, mut waiting) = (BTreeSet::new(), vec![node]);
    while let Some(node) = waiting.pop() {
        for next in graph.get(node).into_iter().flatten() {
            if seen.insert(next) {
                waiting.push(next);
            }
        }
    }
    seen
}

fn describe(cycle: &[String], reasons: &BTreeMap<(String, String), String>) -> String {
    let inside = |(from, to): &&(String, String)| cycle.contains(from) && cycle.contains(to);
    let lines: Vec<&str> = reasons.keys().filter(inside).map(|pair| reasons[pair].as_str()).collect();
    format!("import cycle of {}: {}", cycle.join(", "), lines.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let paths: Vec<PathBuf> = files.iter().map(|(path, _)| PathBuf::from(path)).collect();
        let read = |path: &Path| {
            let known = files.iter().find(|(known, _)| Path::new(known) == path);
            known.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "no such file".to_owned())
        };
        check(Path::new("src"), &paths, read).unwrap().into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn two_files_that_import_each_other_are_a_cycle() {
        let messages = found(&[("src/lib.rs", ""), ("src/a.rs", "use crate::b::B;"), ("src/b.rs", "use super::a::A;")]);
        assert_eq!(messages, ["import cycle of a, b: a uses b; b uses a"]);
    }

    #[test]
    fn folders_are_compared_with_everything_below_them() {
        let files = [("src/x/mod.rs", ""), ("src/x/one.rs", "use crate::y::two::T;"), ("src/x/three.rs", "")];
        let others = [("src/y/mod.rs", ""), ("src/y/two.rs", "use crate::x::three::H;")];
        let messages = found(&[files.as_slice(), &others].concat());
        assert_eq!(messages, ["import cycle of x, y: x::one uses y::two; y::two uses x::three"]);
    }

    #[test]
    fn a_name_through_a_re_export_is_an_import_of_the_module_that_defines_it() {
        let root = ("src/m/mod.rs", "mod a; mod b; pub use a::A; use b::run;");
        assert_eq!(found(&[root, ("src/m/a.rs", ""), ("src/m/b.rs", "use super::A;")]), Vec::<String>::new());
        let cycle = found(&[root, ("src/m/a.rs", "use super::b::run;"), ("src/m/b.rs", "use super::A;")]);
        assert_eq!(cycle, ["import cycle of a, b: m::a uses m::b; m::b uses m::a"]);
    }

    #[test]
    fn a_child_that_uses_what_its_parent_defines_is_a_cycle_if_the_parent_uses_the_child() {
        let child = ("src/m/a.rs", "use super::Defined;");
        assert_eq!(found(&[("src/m/mod.rs", "mod a;"), child]), Vec::<String>::new());
        assert_eq!(found(&[("src/m/mod.rs", "mod a; use a::A;"), child]).len(), 1);
    }

    #[test]
    fn the_root_of_a_crate_takes_part() {
        let module = ("src/a.rs", "fn a() -> u8 { crate::NUMBER }");
        let messages = found(&[("src/main.rs", "mod a; const NUMBER: u8 = 1; fn main() { a::a(); }"), module]);
        assert_eq!(messages, ["import cycle of a, the crate's root: a uses the root; the root uses a"]);
    }

    #[test]
    fn tests_may_import_anything() {
        let tests = "#[cfg(test)] mod tests { use super::*; use crate::b::B; }";
        assert_eq!(found(&[("src/a.rs", tests), ("src/b.rs", "use crate::a::A;")]), Vec::<String>::new());
    }
}
