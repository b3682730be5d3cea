//! What an agent wrote so far: how often each thing, in the words that a stage has for it. A simulated API server's journal
//! names objects; a real agent's own counters only name verbs.

use std::collections::BTreeMap;

/// How much of what was written is named in one sentence.
const NAMED_MAX: usize = 5;

/// How often each thing was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes(BTreeMap<String, u64>);

impl FromIterator<(String, u64)> for Writes {
    fn from_iter<T: IntoIterator<Item = (String, u64)>>(counts: T) -> Self {
        let mut writes = Self::default();
        for (what, times) in counts {
            *writes.0.entry(what).or_default() += times;
        }
        writes
    }
}

impl Writes {
    /// What was written since an earlier moment and how often, in words; nothing if nothing was.
    pub fn since(&self, earlier: &Self) -> Option<String> {
        let more = |(what, times): (&String, &u64)| {
            let more = times.saturating_sub(earlier.0.get(what).copied().unwrap_or_default());
            (more > 0).then(|| if more == 1 { what.clone() } else { format!("{what}, {more} times") })
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

    fn writes(counts: &[(&str, u64)]) -> Writes {
        counts.iter().map(|(what, times)| ((*what).to_owned(), *times)).collect()
    }

    #[test]
    fn what_grew_is_named_with_how_often() {
        let before = writes(&[("create ConfigMap shop/a", 1), ("change ConfigMap shop/a", 2)]);
        assert_eq!(before.since(&before), None);
        assert_eq!(Writes::default().since(&before), None);
        let after =
            writes(&[("create ConfigMap shop/a", 1), ("change ConfigMap shop/a", 5), ("delete ConfigMap shop/b", 1)]);
        let words = "change ConfigMap shop/a, 3 times; delete ConfigMap shop/b";
        assert_eq!(after.since(&before).as_deref(), Some(words));
    }

    #[test]
    fn the_same_words_are_counted_together() {
        assert_eq!(writes(&[("patch", 1), ("patch", 2)]), writes(&[("patch", 3)]));
    }

    #[test]
    fn many_things_are_not_all_named() {
        let many: Writes = (0..7).map(|number| (format!("create ConfigMap shop/{number}"), 1)).collect();
        let words = many.since(&Writes::default()).unwrap();
        assert!(words.ends_with("create ConfigMap shop/4; and 2 others"), "{words}");
    }
}
