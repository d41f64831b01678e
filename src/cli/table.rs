//! Tables for a terminal: columns by the width that characters have there, of which a Chinese one takes two.

use unicode_width::UnicodeWidthStr as _;

/// A table with a head; the last column may be as long as it wants.
pub(super) fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = heads.map(str::width);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let line = |cells: &[&str]| {
        let padded =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.width())));
        format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    let mut text = line(&heads);
    for row in rows {
        text.push_str(&line(&row.each_ref().map(String::as_str)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chinese_character_takes_two_columns() {
        let rows = [["客厅灯".to_owned(), "开".to_owned()], ["lamp".to_owned(), "on".to_owned()]];
        assert_eq!(table(["device", "state"], &rows), "device  state\n客厅灯  开\nlamp    on\n");
    }
}
