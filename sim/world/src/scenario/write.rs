//! Writes a scenario as the text of a scenario file, one line per step where that is possible.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::document::Scenario;

impl Scenario {
    /// Writes the title, the fleet and the steps. Expectations are not written: generated scenarios have none.
    pub fn to_yaml(&self) -> String {
        let mut text = format!("title: {}\nproves: []\n", write_flow(&Value::String(self.title.clone())));
        if self.world {
            text.push_str("world: true\n");
        }
        writeln!(text, "fleet: {}\nsteps:", write_flow(&to_value(&self.fleet))).expect("a string takes any text");
        for (_, step) in self.steps.iter() {
            text.push_str(&write_step(&to_value(step)));
        }
        text
    }
}

fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("scenarios have text keys only")
}

/// Writes a step on one line; a bundle becomes a block of its own, one line per document.
fn write_step(step: &Value) -> String {
    let fields = step.as_object().and_then(|step| step.iter().next()).and_then(|(name, body)| {
        let body = body.as_object()?;
        Some((name, body, body.get("yaml")?.as_str()?))
    });
    let Some((name, body, yaml)) = fields else { return format!("  - {}\n", write_entry(step)) };
    let mut text = format!("  - {name}:\n");
    for (field, value) in body.iter().filter(|(field, _)| *field != "yaml") {
        writeln!(text, "      {field}: {}", write_flow(value)).expect("a string takes any text");
    }
    if yaml.is_empty() {
        text.push_str("      yaml: \"\"\n");
        return text;
    }
    text.push_str("      yaml: |\n");
    for line in yaml.lines() {
        writeln!(text, "        {line}").expect("a string takes any text");
    }
    text
}

/// Writes a mapping with one field without its braces.
fn write_entry(step: &Value) -> String {
    match step.as_object().and_then(|fields| fields.iter().next()) {
        Some((name, value)) => format!("{name}: {}", write_flow(value)),
        None => write_flow(step),
    }
}

fn write_flow(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{}: {}", write_text(name), write_flow(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(write_flow).collect::<Vec<_>>().join(", ")),
        Value::String(text) => write_text(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Writes a text without quotes where YAML reads it as the same text.
fn write_text(text: &str) -> String {
    let is_plain_character = |character: char| character.is_ascii_alphanumeric() || "-_./ ".contains(character);
    let is_keyword =
        ["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_lowercase().as_str());
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && !text.ends_with(' ')
        && text.chars().all(is_plain_character)
        && !is_keyword;
    // A duration such as 30s begins with a digit and is no number.
    let is_duration = super::duration::Span::parse(text).is_ok();
    if is_plain || is_duration { text.to_owned() } else { Value::String(text.to_owned()).to_string() }
}

#[cfg(test)]
mod tests {
    use sindri_model::yaml;

    use super::*;
    use crate::worlds;

    #[test]
    fn a_written_scenario_is_read_as_the_same_steps() {
        for seed in 0..50 {
            let world = worlds::generate(seed);
            let text = world.to_yaml();
            let read: Scenario = yaml::parse_into(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
            let steps = |scenario: &Scenario| {
                let steps = scenario.steps.iter().map(|(_, step)| to_value(step));
                // A block of a YAML text ends with a line break.
                steps.map(|step| step.to_string().replace("\\n\"", "\"")).collect::<Vec<_>>()
            };
            assert_eq!(steps(&read), steps(&world), "{text}");
            assert_eq!(to_value(&read.fleet), to_value(&world.fleet));
            assert!(read.world);
        }
    }
}
