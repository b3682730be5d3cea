//! The steps of a scenario in order, with every `repeat` expanded.

use std::fmt;

use serde::Deserialize;
use serde::de::value::EnumAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, VariantAccess, Visitor};

use super::repeat::Repeat;
use super::step::Step;

/// Steps, grouped by the entry of the file that they come from: one step per entry, or those of a `repeat`.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct StepList(Vec<Entry>);

impl StepList {
    /// Creates a list in a program.
    pub fn from_steps(steps: Vec<Step>) -> Self {
        Self(steps.into_iter().map(|step| Entry(vec![step])).collect())
    }

    /// Iterates over the steps, each with the number of its entry in the file, counted from 1.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Step)> {
        (1..).zip(&self.0).flat_map(|(number, entry)| entry.0.iter().map(move |step| (number, step)))
    }
}

/// One entry of the list.
#[derive(Clone, Debug)]
struct Entry(Vec<Step>);

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_enum("Step", &[], EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a step")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, entry: A) -> Result<Entry, A::Error> {
        let (name, variant) = entry.variant::<String>()?;
        if name == "repeat" {
            let repeat: Repeat = variant.newtype_variant()?;
            return repeat.expand().map(Entry).map_err(A::Error::custom);
        }
        Step::deserialize(EnumAccessDeserializer::new(NamedVariant { name, variant })).map(|step| Entry(vec![step]))
    }
}

/// A variant whose name was already read.
struct NamedVariant<V> {
    name: String,
    variant: V,
}

impl<'de, V: VariantAccess<'de>> EnumAccess<'de> for NamedVariant<V> {
    type Error = V::Error;
    type Variant = V;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, V), V::Error> {
        Ok((seed.deserialize(self.name.into_deserializer())?, self.variant))
    }
}

#[cfg(test)]
mod tests {
    use sindri_model::yaml;

    use super::*;

    #[test]
    fn a_repeat_is_expanded_in_place_and_keeps_the_number_of_its_entry() {
        let text = "- stall\n- repeat: {times: 2, as: n, steps: [kill: 'east-{n}', advance: '{n}s']}\n- resume\n";
        let steps: StepList = yaml::parse_into(text).expect("a valid list");
        let found: Vec<String> = steps.iter().map(|(number, step)| format!("{number} {step:?}")).collect();
        let expected = [
            "1 Stall",
            "2 Kill(\"east-1\")",
            "2 Advance(Span(1s))",
            "2 Kill(\"east-2\")",
            "2 Advance(Span(2s))",
            "3 Resume",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_error_in_a_step_has_the_line_of_the_step() {
        let line = |text| yaml::parse_into::<StepList>(text).map_err(|error| error.line).err();
        assert_eq!(line("- stall\n- advance: 10 minutes\n"), Some(2));
        assert_eq!(line("- stall\n- stall\n- jump: 1s\n"), Some(3));
        assert_eq!(line("- stall\n- repeat: {times: 0, as: n, steps: [stall]}\n"), Some(2));
    }
}
