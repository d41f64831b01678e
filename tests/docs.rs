//! What the documents promise and a machine can check: configuration that is shown is understood, files that are named exist.
#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use truetwin::config::Config;

const READMES: [&str; 2] = ["README.md", "README.zh-CN.md"];

/// Documents that name files; what they call a file stands in backticks or behind a link.
const DOCUMENTS: [&str; 9] = [
    "README.md",
    "README.zh-CN.md",
    "CHANGELOG.md",
    "src/lib.rs",
    "src/twin/semantics.md",
    "src/answer/answers.md",
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
