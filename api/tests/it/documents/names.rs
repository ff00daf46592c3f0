//! The document knows a shape by the name of its type alone: of two types with one name, one would
//! silently describe the other's answers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where the edge that is described has its wire types.
const EDGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

#[test]
fn every_described_type_has_a_name_of_its_own() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    described(Path::new(EDGE), &mut places);
    assert!(
        places.contains_key("ProjectView"),
        "the types are elsewhere"
    );
    places.retain(|_, places| places.len() > 1);
    assert!(places.is_empty(), "names that are taken twice: {places:?}");
}

/// Collects the types that derive a schema, by name.
fn described(directory: &Path, places: &mut BTreeMap<String, Vec<String>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            described(&path, places);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for derived in text.split("#[derive(").skip(1) {
            let (traits, rest) = derived.split_once(")]").unwrap();
            let mut words =
                rest.split(|character: char| !character.is_alphanumeric() && character != '_');
            if !traits.contains("ToSchema") || words.all(|word| word != "struct" && word != "enum")
            {
                continue;
            }
            let name = words.next().unwrap().to_owned();
            places
                .entry(name)
                .or_default()
                .push(path.display().to_string());
        }
    }
}
