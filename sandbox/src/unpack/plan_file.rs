//! Recognizing a saved plan by its content: a zip with an entry named `tfplan`.

const ZIP: &[u8] = b"PK\x03\x04";
const CENTRAL: &[u8] = b"PK\x01\x02";
const NAME: &[u8] = b"tfplan";

/// Bytes from the start of a local header to its name, and from there back to the name's length.
const LOCAL: (usize, usize) = (30, 4);
/// The same for a header of the central directory.
const DIRECTORY: (usize, usize) = (46, 18);
/// What must be kept of earlier bytes to see a header that lies across two pieces.
const KEPT: usize = DIRECTORY.0 + NAME.len() - 1;

/// Looks at the bytes of one file as they pass.
#[derive(Default)]
pub(super) struct PlanScan {
    seen: u64,
    zip: bool,
    kept: Vec<u8>,
    found: bool,
}

impl PlanScan {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let head_missing = self.seen < ZIP.len() as u64;
        self.seen += bytes.len() as u64;
        if self.found || (!head_missing && !self.zip) {
            return;
        }
        self.kept.extend_from_slice(bytes);
        if head_missing && self.seen >= ZIP.len() as u64 {
            self.zip = self.kept.starts_with(ZIP);
        }
        if self.zip {
            self.found = names_a_plan(&self.kept);
        }
        if !head_missing || self.zip {
            self.kept.drain(..self.kept.len().saturating_sub(KEPT));
        }
    }

    pub(super) const fn found(&self) -> bool {
        self.found
    }
}

fn names_a_plan(bytes: &[u8]) -> bool {
    let length = u16::try_from(NAME.len())
        .expect("the name is short")
        .to_le_bytes();
    let header = |name_at: usize, signature: &[u8], (start, length_at): (usize, usize)| {
        name_at >= start
            && bytes[name_at - start..].starts_with(signature)
            && bytes[name_at - length_at..].starts_with(&length)
    };
    let mut places = bytes
        .windows(NAME.len())
        .enumerate()
        .filter(|(_, window)| *window == NAME);
    places.any(|(at, _)| header(at, ZIP, LOCAL) || header(at, CENTRAL, DIRECTORY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zip_entry(name: &[u8]) -> Vec<u8> {
        let mut bytes = ZIP.to_vec();
        bytes.extend([0; 22]);
        bytes.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend(name);
        bytes
    }

    fn central_entry(name: &[u8]) -> Vec<u8> {
        let mut bytes = CENTRAL.to_vec();
        bytes.extend([0; 24]);
        bytes.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        bytes.extend([0; 16]);
        bytes.extend(name);
        bytes
    }

    fn found(bytes: &[u8], piece: usize) -> bool {
        let mut scan = PlanScan::default();
        bytes.chunks(piece).for_each(|piece| scan.add(piece));
        scan.found()
    }

    #[test]
    fn a_zip_with_a_plan_entry_is_found_however_it_arrives() {
        let first = zip_entry(b"tfplan");
        let later = [zip_entry(b"other"), vec![7; 100], zip_entry(b"tfplan")].concat();
        let hidden = [zip_entry(b"other"), vec![7; 100], central_entry(b"tfplan")].concat();
        for bytes in [first, later, hidden] {
            for piece in [1, 3, 7, 4096] {
                assert!(found(&bytes, piece), "{piece}");
            }
        }
    }

    #[test]
    fn other_files_are_left_alone() {
        for bytes in [
            zip_entry(b"tfplanx"),
            zip_entry(b"other tfplan"),
            [b"x".to_vec(), zip_entry(b"tfplan")].concat(),
            b"tfplan".to_vec(),
            b"PK".to_vec(),
        ] {
            assert!(!found(&bytes, 3));
        }
    }
}
