//! What the documents promise and a machine can check: configuration that is shown is understood, files that are named exist.
#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use truetwin::config::Config;

const READMES: [&str; 2] = ["README.md", "README.zh-CN.md"];

/// Documents that name files; what they call a file stands in backticks or behind a link.
const DOCUMENTS: [&str; 10] = [
    "README.md",
    "README.zh-CN.md",
    "CHANGELOG.md",
    "src/lib.rs",
    "src/twin/semantics.md",
    "src/answer/answers.md",
    "src/broker/interoperability.md",
    "firmware/wire/protocol.md",
    "src/broker/protocol.md",
    "firmware/micropython/README.md",
];

/// Endings of files that are kept here.
const ENDINGS: [&str; 7] = [".rs", ".md", ".toml", ".py", ".yaml", ".service", ".sh"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn the_configuration_in_each_readme_is_understood() {
    for readme in READMES {
        let text = text(readme);
        let blocks = text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        let shown: String = blocks.collect::<Vec<_>>().join("\n");
        assert!(!shown.is_empty(), "{readme} shows none");
        Config::parse(readme, &shown).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn each_file_that_a_document_names_is_there() {
    let (mut missing, mut named) = (Vec::new(), 0);
    for document in DOCUMENTS {
        let text = text(document);
        let quoted = text.split('`').skip(1).step_by(2);
        let linked = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for name in quoted.chain(linked) {
            if !names_a_file(name) {
                continue;
            }
            named += 1;
            if !exists_beside(document, name) {
                missing.push(format!("{document}: {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(named > 40, "only {named} names were understood as files");
}

/// Tables whose rows name the tests that hold them: the document, and where its tests are.
const TABLES_OF_TESTS: [(&str, &[&str]); 2] = [
    (
        "src/broker/interoperability.md",
        &["tests/clients/test_interoperability_3.py", "tests/clients/test_interoperability_5.py"],
    ),
    ("tests/door_breakages.rs", &["tests/door_breakages.rs", "tests/door_breakages", "tests/door", "tests/clients"]),
];

#[test]
fn each_test_that_a_table_names_is_there_and_each_scenario_is_in_its_table() {
    for (document, places) in TABLES_OF_TESTS {
        let rows: Vec<String> = text(document).lines().filter(|line| is_row(line)).map(str::to_owned).collect();
        assert!(rows.len() > 20, "{document} has {} rows", rows.len());
        let code: String = places.iter().map(|place| code(&root().join(place))).collect();
        for row in &rows {
            for name in row.split('`').skip(1).step_by(2).filter(|name| names_a_test(name)) {
                let there = [format!("fn {name}("), format!("def {name}(")].iter().any(|text| code.contains(text));
                assert!(there, "{document}: there is no test {name}");
            }
        }
        let tests = code.split("\ndef test_").skip(1).filter_map(|rest| rest.split('(').next());
        for name in tests.filter(|_| document.ends_with(".md")) {
            let said = text(document).contains(&format!("`test_{name}`"));
            assert!(said, "{document} does not name test_{name}");
        }
    }
}

/// A row of a table, in a document or in the head of a module.
fn is_row(line: &str) -> bool {
    line.trim_start_matches("//! ").starts_with('|') && !line.contains("|---")
}

/// Whether a text is a test's name, and not that of a setting or a file.
fn names_a_test(name: &str) -> bool {
    name.contains('_') && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// What a file says, or all files of a folder.
fn code(place: &Path) -> String {
    if place.is_file() {
        return fs::read_to_string(place).unwrap();
    }
    let files = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.is_file()).map(|file| fs::read_to_string(file).unwrap()).collect()
}

/// Whether a text is the path of a file: a folder and an ending, and nothing that is to be filled in.
fn names_a_file(name: &str) -> bool {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    plain && name.contains('/') && !name.contains("//") && ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// A path counts from the root, from `src`, or from the document's own folder.
fn exists_beside(document: &str, name: &str) -> bool {
    let own: PathBuf = root().join(document).parent().unwrap().to_owned();
    [root().to_owned(), root().join("src"), own].iter().any(|folder| folder.join(name).exists())
}
