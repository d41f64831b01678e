//! Each rule of `src/twin/semantics.md` that is due, and each row of its fault table, has a test with its number or name.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

const SEMANTICS: &str = include_str!("../src/twin/semantics.md");

/// How far a rule is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Now,
    InPart,
    NotYet,
}

#[test]
fn each_rule_that_is_due_is_held_by_a_test_of_its_number() {
    let tests = tests();
    let mut table = String::new();
    let mut missing = Vec::new();
    for (rule, due) in rules() {
        let prefix = format!("s{}_", rule.replace('.', "_"));
        let held: Vec<&String> = tests.iter().filter(|name| name.starts_with(&prefix)).collect();
        table += &format!("{rule:>5} {due:?}: {held:?}\n");
        if due != Due::NotYet && held.is_empty() {
            missing.push(rule);
        }
    }
    assert!(missing.is_empty(), "due, and no test of that number: {missing:?}\n{table}");
}

#[test]
fn each_row_of_the_fault_table_that_is_due_is_held_by_a_test_of_its_name() {
    let tests = tests();
    let missing: Vec<String> = faults()
        .into_iter()
        .filter(|(_, due)| *due)
        .map(|(fault, _)| format!("fault_{}", slug(&fault)))
        .filter(|name| !tests.contains(name))
        .collect();
    assert!(missing.is_empty(), "due, and no test of that name: {missing:#?}");
}

#[test]
fn each_test_with_a_rules_number_names_a_rule_that_there_is() {
    let rules = rules();
    let strange: Vec<String> =
        tests().into_iter().filter(|name| rule_of(name).is_some_and(|rule| !rules.contains_key(&rule))).collect();
    assert!(strange.is_empty(), "{strange:?}");
}

#[test]
fn what_is_due_only_in_part_says_what_is_missing() {
    for (line, due) in SEMANTICS.lines().filter_map(|line| Some((line, rule(line)?.1))) {
        assert_eq!(due == Due::InPart, line.contains("*Not yet:*"), "{line}");
    }
}

/// Rules are list items that begin with their number: `- 3.4 ...`, `- 2.6 *(not yet)* ...`, `- 4.5 *(in part)* ...`.
fn rules() -> BTreeMap<String, Due> {
    let rules: BTreeMap<String, Due> = SEMANTICS.lines().filter_map(rule).collect();
    assert!(rules.len() > 40, "the specification was read: {rules:?}");
    rules
}

fn rule(line: &str) -> Option<(String, Due)> {
    let (number, rest) = line.strip_prefix("- ")?.split_once(' ')?;
    let (chapter, of_it) = number.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(chapter) || !digits(of_it) {
        return None;
    }
    let due = match rest {
        rest if rest.starts_with("*(not yet)* ") => Due::NotYet,
        rest if rest.starts_with("*(in part)* ") => Due::InPart,
        _ => Due::Now,
    };
    Some((number.to_owned(), due))
}

/// The rows of the fault table: the fault, and whether it is due (the last column says `now` or `not yet`).
fn faults() -> Vec<(String, bool)> {
    let table = SEMANTICS.lines().skip_while(|line| !line.starts_with("| fault |")).skip(2);
    let rows: Vec<(String, bool)> = table
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let due = cells.last().copied().unwrap_or_default();
            assert!(cells.len() == 6 && ["now", "not yet"].contains(&due), "{line}");
            (cells[0].to_owned(), due == "now")
        })
        .collect();
    assert!(rows.len() > 20, "the table was read: {rows:?}");
    rows
}

/// `slow, within allowance` is `slow_within_allowance`.
fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

/// `s3_4_retained_report_never_converges` holds rule 3.4.
fn rule_of(test: &str) -> Option<String> {
    let mut parts = test.strip_prefix('s')?.split('_');
    let (chapter, of_it) = (parts.next()?, parts.next()?);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (digits(chapter) && digits(of_it)).then(|| format!("{chapter}.{of_it}"))
}

/// The names of all tests of the hub and of the device core: functions below a `#[test]` or `#[tokio::test]`, or within `proptest!`.
fn tests() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for folder in ["tests", "src", "firmware"] {
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut names);
    }
    names
}

fn read(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder of the sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read(&path, names);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            let mut is_test = false;
            for line in text.lines().map(str::trim) {
                if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                    is_test = true;
                } else if let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test && !line.starts_with("//")) {
                    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
                    names.insert(name.to_owned());
                    is_test = false;
                }
            }
        }
    }
}
