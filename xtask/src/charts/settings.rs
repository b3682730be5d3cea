//! Settings in the charts: each exists in the program, and each setting of the program can be set.

use std::collections::BTreeSet;
use std::fs;

use syn::visit::{Visit, visit_expr_call};
use syn::{Expr, ExprCall, Lit};

use super::chart::{Chart, read};
use super::values;

const COMPOSE: &str = "deploy/compose/compose.yaml";

/// Compares the settings of a chart, in its schema and its templates, with those of the program.
pub fn check(chart: &Chart) -> Result<Vec<String>, String> {
    let known = find_settings(&read(chart.settings_source)?)?;
    let leaves = values::list_leaves(chart)?;
    let names = leaves.iter().filter_map(|leaf| leaf.path.strip_prefix("settings."));
    let mut used: BTreeSet<String> = names.map(|name| format!("{}{name}", chart.settings_section)).collect();
    used.extend(find_variables(chart)?.iter().map(|name| to_setting(name, chart.settings_section)));
    let unknown = used.difference(&known).map(|name| format!("{}: the program has no setting {name}", chart.name));
    let left_out: BTreeSet<String> = chart.settings_left_out.iter().map(|name| (*name).to_owned()).collect();
    let expected: BTreeSet<String> = known.difference(&left_out).cloned().collect();
    let missing = expected
        .difference(&used)
        .map(|name| format!("{}: {name} cannot be set; add it to `settings` in values.schema.json", chart.name));
    Ok(unknown.chain(missing).collect())
}

/// Checks that each setting in the file for Docker Compose exists.
pub fn check_compose(chart: &Chart) -> Result<Vec<String>, String> {
    let known = find_settings(&read(chart.settings_source)?)?;
    let text = read(COMPOSE)?;
    let variables = text.lines().filter_map(|line| line.trim().strip_prefix("SINDRI__")?.split(':').next());
    let names = variables.map(|name| to_setting(name, chart.settings_section));
    Ok(names
        .filter(|name| !known.contains(name))
        .map(|name| format!("{COMPOSE}: there is no setting {name}"))
        .collect())
}

/// Returns the names in a table of settings: the first arguments of the constructors of `Setting`.
fn find_settings(source: &str) -> Result<BTreeSet<String>, String> {
    let file = syn::parse_file(source).map_err(|error| error.to_string())?;
    let mut names = Names(BTreeSet::new());
    names.visit_file(&file);
    Ok(names.0)
}

struct Names(BTreeSet<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let (Expr::Path(function), Some(Expr::Lit(first))) = (call.func.as_ref(), call.args.first())
            && function.path.segments.first().is_some_and(|segment| segment.ident == "Setting")
            && let Lit::Str(name) = &first.lit
        {
            self.0.insert(name.value());
        }
        visit_expr_call(self, call);
    }
}

/// Returns the environment variables of the program in the templates of a chart.
fn find_variables(chart: &Chart) -> Result<BTreeSet<String>, String> {
    let directory = chart.directory().join("templates");
    let fail = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut variables = BTreeSet::new();
    for entry in fs::read_dir(&directory).map_err(fail)? {
        let text = fs::read_to_string(entry.map_err(fail)?.path()).map_err(fail)?;
        let names = text.lines().filter_map(|line| line.trim().strip_prefix("- name: SINDRI__"));
        variables.extend(names.map(str::to_owned));
    }
    Ok(variables)
}

/// Converts `BROKER__TLS__KEY_FILE` to `tls.key_file`.
fn to_setting(variable: &str, section: &str) -> String {
    let name = variable.split_once("__").map_or(variable, |(_, name)| name);
    format!("{section}{}", name.to_lowercase().replace("__", "."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_in_every_shape_of_a_table() {
        let source = r#"
            const A: Setting = Setting { default: Some("1"), ..Setting::plain("a.b", "a-b", X, "help") };
            const B: Setting = Setting::secret("agent.pak", "help").with_default("x");
            const C: Other = Other::plain("other");
        "#;
        assert_eq!(find_settings(source).unwrap().into_iter().collect::<Vec<_>>(), ["a.b", "agent.pak"]);
    }

    #[test]
    fn a_variable_is_converted_to_the_name_of_its_setting() {
        assert_eq!(to_setting("BROKER__TLS__KEY_FILE", ""), "tls.key_file");
        assert_eq!(to_setting("AGENT__PAK_FILE", "agent."), "agent.pak_file");
    }
}
