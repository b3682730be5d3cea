//! Counts of an agent's writes, by a description: the journal of a simulated API server names objects, the counters of a
//! real agent only name verbs.

use std::collections::BTreeMap;

/// Most writes that are named in one sentence.
const NAMED_MAX: usize = 5;

/// Number of writes by description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteCounts(BTreeMap<String, u64>);

impl FromIterator<(String, u64)> for WriteCounts {
    fn from_iter<T: IntoIterator<Item = (String, u64)>>(counts: T) -> Self {
        let mut writes = Self::default();
        for (description, times) in counts {
            *writes.0.entry(description).or_default() += times;
        }
        writes
    }
}

impl WriteCounts {
    /// Describes the writes since an earlier count; `None` if there were none.
    pub fn describe_since(&self, earlier: &Self) -> Option<String> {
        let more = |(description, times): (&String, &u64)| {
            let more = times.saturating_sub(earlier.0.get(description).copied().unwrap_or_default());
            (more > 0).then(|| if more == 1 { description.clone() } else { format!("{description}, {more} times") })
        };
        let grown: Vec<String> = self.0.iter().filter_map(more).collect();
        let named = grown.get(..NAMED_MAX).unwrap_or(&grown).join("; ");
        match grown.len().saturating_sub(NAMED_MAX) {
            _ if grown.is_empty() => None,
            0 => Some(named),
            others => Some(format!("{named}; and {others} others")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(counts: &[(&str, u64)]) -> WriteCounts {
        counts.iter().map(|(description, times)| ((*description).to_owned(), *times)).collect()
    }

    #[test]
    fn new_writes_are_named_with_their_number() {
        let before = writes(&[("create ConfigMap shop/a", 1), ("change ConfigMap shop/a", 2)]);
        assert_eq!(before.describe_since(&before), None);
        assert_eq!(WriteCounts::default().describe_since(&before), None);
        let after =
            writes(&[("create ConfigMap shop/a", 1), ("change ConfigMap shop/a", 5), ("delete ConfigMap shop/b", 1)]);
        let expected = "change ConfigMap shop/a, 3 times; delete ConfigMap shop/b";
        assert_eq!(after.describe_since(&before).as_deref(), Some(expected));
    }

    #[test]
    fn equal_descriptions_are_counted_together() {
        assert_eq!(writes(&[("patch", 1), ("patch", 2)]), writes(&[("patch", 3)]));
    }

    #[test]
    fn only_a_few_of_many_writes_are_named() {
        let many: WriteCounts = (0..7).map(|number| (format!("create ConfigMap shop/{number}"), 1)).collect();
        let text = many.describe_since(&WriteCounts::default()).unwrap();
        assert!(text.ends_with("create ConfigMap shop/4; and 2 others"), "{text}");
    }
}
