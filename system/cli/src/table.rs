//! Plain tables: columns as wide as their widest cell, two spaces apart, no trailing spaces.

/// Formats a table.
pub(crate) fn format_table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = header.map(|cell| cell.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = format_line(&header, &widths);
    for row in rows {
        text.push_str(&format_line(&row.each_ref().map(String::as_str), &widths));
    }
    text
}

fn format_line(cells: &[&str], widths: &[usize]) -> String {
    let padded: Vec<String> =
        cells.iter().zip(widths).map(|(cell, width)| format!("{:width$}", replace_control_characters(cell))).collect();
    format!("{}\n", padded.join("  ").trim_end())
}

/// Replaces line breaks and other control characters by spaces.
fn replace_control_characters(cell: &str) -> String {
    cell.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::format_table;

    #[test]
    fn columns_are_aligned_and_a_cell_has_replace_control_characters() {
        let rows = [["ä".to_owned(), "x\ny".to_owned()], ["long".to_owned(), String::new()]];
        assert_eq!(format_table(["A", "B"], &rows), "A     B\nä     x y\nlong\n");
    }
}
