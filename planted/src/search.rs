//! Looking for planted secrets.

use crate::forms;

/// The markers of one plan, in every form.
#[derive(Debug)]
pub struct Search {
    forms: Vec<Vec<String>>,
}

impl Search {
    /// A search for these markers.
    pub fn of(markers: &[String]) -> Self {
        Self {
            forms: markers.iter().map(|marker| forms::all(marker)).collect(),
        }
    }

    /// Of each marker that stands in the bytes, one form in which it does.
    pub fn found_in(&self, bytes: &[u8]) -> Vec<&str> {
        let text = String::from_utf8_lossy(bytes);
        let markers = self.forms.iter();
        markers
            .filter_map(|forms| forms.iter().find(|form| text.contains(form.as_str())))
            .map(String::as_str)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dice::Dice;

    #[test]
    fn every_copy_of_a_marker_is_found_wherever_it_stands() {
        let mut dice = Dice::new(1);
        for _ in 0..1_000 {
            let markers = [forms::marker(&mut dice), forms::marker(&mut dice)];
            let search = Search::of(&markers);
            let copy = forms::copy(&markers[1], &mut dice);
            let document = json!({ "some": ["text", { &copy: 1 }] }).to_string();
            assert_eq!(search.found_in(copy.as_bytes()).len(), 1, "{copy}");
            assert_eq!(search.found_in(document.as_bytes()).len(), 1, "{document}");
        }
    }

    #[test]
    fn what_is_no_marker_is_not_found() {
        let mut dice = Dice::new(2);
        let (planted, other) = (forms::marker(&mut dice), forms::marker(&mut dice));
        let search = Search::of(&[planted]);
        for form in forms::all(&other) {
            assert!(search.found_in(form.as_bytes()).is_empty(), "{form}");
        }
    }
}
