//! Tables: columns as wide as their widest cell, two spaces apart, cut where the terminal ends, without trailing spaces.

use jiff::Timestamp;

use super::cell::{Cell, Style};
use super::resource::Column;

const GAP: usize = 2;
/// Width to which the last column is cut before others are.
const LAST_WIDTH_MIN: usize = 12;
/// Width below which no column is cut.
const WIDTH_MIN: usize = 4;

/// Place of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Limit on the length of a line.
    pub width: Option<usize>,
    pub has_colors: bool,
    pub now: Timestamp,
}

/// One line of a table: the text and the style of each cell.
type Line = Vec<(String, Style)>;

/// Formats a table with a header.
pub(super) fn format_table<T>(columns: &[Column<T>], items: &[T], layout: Layout) -> String {
    let header: Line = columns.iter().map(|column| (column.header.to_owned(), Style::Plain)).collect();
    let format_item = |item: &T| columns.iter().map(|column| format_cell(&(column.cell)(item), layout)).collect();
    let lines: Vec<Line> = std::iter::once(header).chain(items.iter().map(format_item)).collect();
    let widths = fit_widths(measure(&lines), layout.width);
    lines.iter().map(|line| format_line(line, &widths, layout.has_colors)).collect()
}

/// Formats a table whose columns are known only when it is printed.
pub(super) fn format_grid(header: &[String], rows: &[Vec<Cell>], layout: Layout) -> String {
    let lines = to_lines(header, rows, layout);
    let widths = fit_widths(measure(&lines), layout.width);
    lines.iter().map(|line| format_line(line, &widths, layout.has_colors)).collect()
}

/// Returns true if no cell of such a table must be cut.
pub(super) fn fits(header: &[String], rows: &[Vec<Cell>], layout: Layout) -> bool {
    let widths = measure(&to_lines(header, rows, layout));
    let length = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    layout.width.is_none_or(|limit| length <= limit)
}

fn to_lines(header: &[String], rows: &[Vec<Cell>], layout: Layout) -> Vec<Line> {
    let header: Line = header.iter().map(|text| (text.clone(), Style::Plain)).collect();
    let rows = rows.iter().map(|row| row.iter().map(|cell| format_cell(cell, layout)).collect());
    std::iter::once(header).chain(rows).collect()
}

/// Formats one object: each column on a line of its own.
pub(super) fn format_object<T>(columns: &[Column<T>], item: &T, layout: Layout) -> String {
    let to_line =
        |column: &Column<T>| vec![(column.header.to_owned(), Style::Plain), format_cell(&(column.cell)(item), layout)];
    let lines: Vec<Line> = columns.iter().map(to_line).collect();
    let widths = measure(&lines);
    lines.iter().map(|line| format_line(line, &widths, layout.has_colors)).collect()
}

fn format_cell(cell: &Cell, layout: Layout) -> (String, Style) {
    (cell.format(layout.now), cell.style())
}

/// Returns the width of the widest cell of each column.
fn measure(lines: &[Line]) -> Vec<usize> {
    let mut widths = vec![0; lines.first().map_or(0, Vec::len)];
    for line in lines {
        for (width, (text, _)) in widths.iter_mut().zip(line) {
            *width = text.chars().count().max(*width);
        }
    }
    widths
}

/// Reduces the widths until a line fits: first that of the last column, then those of the widest ones.
fn fit_widths(mut widths: Vec<usize>, limit: Option<usize>) -> Vec<usize> {
    let Some(limit) = limit else { return widths };
    loop {
        let length = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let Some(excess) = length.checked_sub(limit).filter(|excess| *excess > 0) else { return widths };
        if let Some(last) = widths.last_mut().filter(|last| **last > LAST_WIDTH_MIN) {
            *last = last.saturating_sub(excess).max(LAST_WIDTH_MIN);
            continue;
        }
        match widths.iter_mut().max().filter(|widest| **widest > WIDTH_MIN) {
            Some(widest) => *widest -= 1,
            None => return widths,
        }
    }
}

fn format_line(line: &[(String, Style)], widths: &[usize], has_colors: bool) -> String {
    let last_text = line.iter().rposition(|(text, _)| !text.is_empty()).unwrap_or_default();
    let mut formatted = String::new();
    for (index, ((text, style), width)) in line.iter().zip(widths).enumerate().take(last_text + 1) {
        let text = cut(text, *width);
        formatted.push_str(&style.paint(&text, has_colors));
        if index < last_text {
            formatted.push_str(&" ".repeat(width + GAP - text.chars().count()));
        }
    }
    formatted.push('\n');
    formatted
}

/// Cuts a text with an ellipsis.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.trim_end().to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row(&'static str, &'static str);

    fn columns() -> Vec<Column<Row>> {
        vec![
            Column::new("A", |row: &Row| Cell::text(row.0).styled(Style::Bad)),
            Column::new("B", |row: &Row| Cell::text(row.1)),
        ]
    }

    fn layout(width: Option<usize>) -> Layout {
        Layout { width, has_colors: false, now: Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn columns_are_aligned_and_a_cell_has_no_control_characters() {
        let rows = [Row("ä", "x\ny"), Row("long", "")];
        assert_eq!(format_table(&columns(), &rows, layout(None)), "A     B\nä     x y\nlong\n");
        assert_eq!(format_table(&columns(), &[], layout(None)), "A  B\n");
    }

    #[test]
    fn one_object_has_a_line_for_each_column() {
        assert_eq!(format_object(&columns(), &Row("east", ""), layout(Some(4))), "A  east\nB\n");
    }

    #[test]
    fn the_last_column_is_cut_first_and_no_line_is_longer_than_the_terminal() {
        let rows = [Row("a name", "a message that is much too long"), Row("b", "short")];
        let text = format_table(&columns(), &rows, layout(Some(20)));
        assert_eq!(text, "A       B\na name  a message t…\nb       short\n");
        let long = [Row("a name of twenty-four chars", "a message that is much too long")];
        for width in [10, 14, 20, 30, 80] {
            let text = format_table(&columns(), &long, layout(Some(width)));
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
        }
    }

    #[test]
    fn colours_do_not_change_the_alignment_and_are_off_without_a_terminal() {
        let rows = [Row("a", "b")];
        let colored = Layout { has_colors: true, ..layout(None) };
        assert_eq!(format_table(&columns(), &rows, colored), "A  B\n\u{1b}[31ma\u{1b}[0m  b\n");
        assert_eq!(format_table(&columns(), &rows, layout(None)), "A  B\na  b\n");
    }
}
