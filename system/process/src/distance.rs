//! Similarity of names, for suggestions in errors.

/// Returns the number of inserted, removed or replaced characters between two texts.
pub fn levenshtein_distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (above, left) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = above + 1;
        for (column, right) in other.chars().enumerate() {
            let replaced = corner + usize::from(left != right);
            corner = row[column + 1];
            row[column + 1] = replaced.min(corner + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::levenshtein_distance;

    #[test]
    fn characters_are_inserted_removed_and_replaced() {
        for (one, other, distance) in
            [("", "", 0), ("a", "", 1), ("", "ab", 2), ("kitten", "sitting", 3), ("ä", "a", 1)]
        {
            assert_eq!(levenshtein_distance(one, other), distance, "{one} {other}");
        }
    }
}
