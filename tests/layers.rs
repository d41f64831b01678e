//! Who may use whom: no arrow points up. The table is the architecture; a new arrow is a decision, made here.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{collections::BTreeSet, fs, path::Path};

/// Each module of the library with the modules of ours that it may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("property", &[]),
    ("random", &[]),
    ("peer", &[]),
    ("private", &[]),
    ("audit", &[]),
    ("topics", &[]),
    ("broker", &["peer", "private", "topics"]),
    ("names", &["property"]),
    ("twin", &["property"]),
    ("metrics", &["twin"]),
    ("answer", &["authz", "names", "property", "twin"]),
    ("dialect", &["property", "twin"]),
    ("config", &["names", "private", "property"]),
    ("data", &["names", "private", "property", "topics"]),
    ("recording", &["property", "twin"]),
    ("recorder", &["property", "recording", "twin"]),
    ("device", &["broker", "dialect", "journal", "metrics", "property", "random", "recorder", "twin"]),
    ("fleet", &["authz", "device", "names", "property", "random", "twin"]),
    ("ingress", &["authz", "broker", "config", "device", "dialect", "fleet", "metrics", "property", "twin"]),
    ("authz", &["names", "property", "twin"]),
    ("mcp", &["answer", "authz", "fleet", "names", "property", "random", "twin"]),
    ("endpoint", &["answer", "authz", "mcp", "names", "random", "twin"]),
    ("control", &["data", "names", "property", "topics"]),
    ("journal", &["property", "twin"]),
    ("backup", &["data", "journal", "property"]),
    ("sim", &[]),
    ("demo", &["config", "data", "mcp", "names", "property", "random", "serve", "sim", "twin"]),
];

#[test]
fn no_module_reaches_up() {
    for (module, allowed) in MAY_USE {
        let used = uses_of(module);
        assert!(!files_of(module).is_empty(), "{module} is in the table and not in src");
        for other in &used {
            let fine = other == module || allowed.contains(&other.as_str());
            assert!(fine, "{module} uses {other}; see the map in src/lib.rs and the table in tests/layers.rs");
        }
    }
}

#[test]
fn every_module_but_the_top_is_in_the_table() {
    let lib = fs::read_to_string("src/lib.rs").unwrap();
    let top = ["cli", "serve"];
    for line in lib.lines().filter_map(|l| l.strip_prefix("pub mod ").and_then(|l| l.strip_suffix(';'))) {
        let known = top.contains(&line) || MAY_USE.iter().any(|(module, _)| *module == line);
        assert!(known, "{line} is not in the table");
    }
}

#[test]
fn only_the_router_names_rumqttd() {
    for file in rust_files(Path::new("src")) {
        let text = code_of(&file);
        assert!(
            !text.contains("rumqttd::") || file.to_string_lossy().contains("src/broker/router"),
            "{}",
            file.display()
        );
    }
}

#[test]
fn the_twin_knows_no_clock_no_runtime_no_json() {
    for file in files_of("twin") {
        let text = code_of(&file);
        for word in ["Instant::now", "SystemTime", "tokio", "serde", "HashMap", "getrandom", "rand::"] {
            assert!(!text.contains(word), "{} names {word}", file.display());
        }
    }
}

fn uses_of(module: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for file in files_of(module) {
        let text = code_of(&file);
        for (at, _) in text.match_indices("crate::") {
            // `truetwin_wire::…` and the like do not end in `crate::`; `$crate::` is a macro's own.
            let name: String = text[at + 7..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if !name.is_empty() {
                used.insert(name);
            }
        }
        for block in text.split("use crate::{").skip(1) {
            used.extend(heads_of(block));
        }
    }
    used.remove("");
    used
}

/// The first names of each branch of a `use crate::{ … };`.
fn heads_of(block: &str) -> Vec<String> {
    let (mut depth, mut heads, mut word) = (0, Vec::new(), String::new());
    for c in block.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => heads.push(std::mem::take(&mut word)),
            c if depth == 0 => word.push(c),
            _ => {}
        }
    }
    heads.push(word);
    heads.iter().map(|h| h.trim().split("::").next().unwrap_or_default().to_owned()).collect()
}

/// A file without its comments and without its unit tests: tests may use what they need.
fn code_of(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let code: Vec<&str> = text
        .lines()
        .filter(|l| !l.trim_start().starts_with("//"))
        .take_while(|l| !l.starts_with("mod tests {"))
        .collect();
    code.join("\n")
}

fn files_of(module: &str) -> Vec<std::path::PathBuf> {
    let mut files = rust_files(&Path::new("src").join(module));
    let single = Path::new("src").join(format!("{module}.rs"));
    if single.exists() {
        files.push(single);
    }
    files
}

fn rust_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files = Vec::new();
    for path in entries.map(|e| e.unwrap().path()) {
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") && path.file_name().is_some_and(|n| n != "tests.rs") {
            files.push(path);
        }
    }
    files
}
