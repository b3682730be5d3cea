//! Values of a chart: each one in `values.schema.json` has an example that changes what is rendered.

use serde_json::Value;

use super::cases::Case;
use super::chart::Chart;
use super::helm::{Helm, NAMESPACE, Rendering};

/// A value that has no values inside.
pub struct Leaf {
    /// Names from the root, separated by dots.
    pub path: String,
    /// Value to which the check sets it.
    example: Value,
}

/// Lists the values in the schema of a chart. Each needs a description and an example.
pub fn list_leaves(chart: &Chart) -> Result<Vec<Leaf>, String> {
    let to_error = |error: &dyn std::fmt::Display| format!("{}: values.schema.json: {error}", chart.name);
    let schema: Value = serde_json::from_str(&chart.read("values.schema.json")?).map_err(|error| to_error(&error))?;
    let mut leaves = Vec::new();
    collect(&schema, "", &mut leaves).map_err(|error| to_error(&error))?;
    Ok(leaves)
}

fn collect(schema: &Value, path: &str, leaves: &mut Vec<Leaf>) -> Result<(), String> {
    if !schema["description"].is_string() {
        return Err(format!("{path} has no description"));
    }
    let Some(properties) = schema["properties"].as_object() else {
        let example = schema["examples"].get(0).ok_or_else(|| format!("{path} has no example"))?;
        leaves.push(Leaf { path: path.to_owned(), example: example.clone() });
        return Ok(());
    };
    if schema["additionalProperties"] != Value::Bool(false) {
        return Err(format!("{path} allows values that it does not name"));
    }
    for (name, inner) in properties {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        collect(inner, &path, leaves)?;
    }
    Ok(())
}

/// Sets each value in turn, on top of the defaults and of each case, and finds those that never change the rendering.
pub fn check(helm: &Helm, chart: &Chart, cases: &[Case]) -> Result<Vec<String>, String> {
    let leaves = list_leaves(chart)?;
    let cases: Vec<&Case> = cases.iter().filter(|case| !case.is_refused() && case.chart.name == chart.name).collect();
    let render_with = |set: Option<String>| {
        let default = Rendering { chart, namespace: NAMESPACE, files: Vec::new(), set: set.clone() };
        let of_cases = cases.iter().map(move |case| Rendering {
            chart,
            namespace: &case.namespace,
            files: vec![&case.values],
            set: set.clone(),
        });
        std::iter::once(default).chain(of_cases)
    };
    let sets = leaves.iter().map(|leaf| Some(format!("{}={}", leaf.path, leaf.example)));
    let renderings: Vec<Rendering<'_>> = std::iter::once(None).chain(sets).flat_map(render_with).collect();
    let rendered = helm.render_many(&renderings)?;
    let mut per_set = rendered.chunks(cases.len() + 1);
    let bases = per_set.next().unwrap_or_default();
    if bases.contains(&None) {
        return Ok(vec![format!("{}: the defaults or a case are refused", chart.name)]);
    }
    // A refusal is no effect: the value needs others.
    let has_effect =
        |rendered: &[Option<Value>]| rendered.iter().zip(bases).any(|(one, base)| one.is_some() && one != base);
    let without = leaves.iter().zip(per_set).filter(|(_, rendered)| !has_effect(rendered));
    Ok(without.map(|(leaf, _)| format!("{}: {} = {} changes nothing", chart.name, leaf.path, leaf.example)).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn collect_paths(schema: &Value) -> Result<Vec<String>, String> {
        let mut leaves = Vec::new();
        collect(schema, "", &mut leaves)?;
        Ok(leaves.into_iter().map(|leaf| leaf.path).collect())
    }

    #[test]
    fn values_without_values_inside_are_listed_with_their_path() {
        let leaf = json!({"description": "A.", "examples": [1]});
        let inner = json!({"description": "B.", "additionalProperties": false, "properties": {"b": leaf}});
        let schema = json!({"description": "C.", "additionalProperties": false, "properties": {"a": inner, "c": leaf}});
        assert_eq!(collect_paths(&schema).unwrap(), ["a.b", "c"]);
    }

    #[test]
    fn a_schema_that_allows_unknown_values_is_rejected() {
        let schema = json!({"description": "C.", "properties": {}});
        assert_eq!(collect_paths(&schema).unwrap_err(), " allows values that it does not name");
        assert_eq!(collect_paths(&json!({"description": "C."})).unwrap_err(), " has no example");
    }
}
