//! Cutting text into lines of bounded length.

/// The longest line; what is longer goes on in the next one.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// A line, or a part of one that is too long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a> {
    /// Without the line break.
    pub(super) text: &'a str,
    /// Whether it is the beginning of what was written as one line.
    pub(super) begins: bool,
    /// Whether it is the end of it.
    pub(super) ends: bool,
}

#[derive(Default)]
pub(super) struct LineCutter {
    line: String,
    is_continued: bool,
}

impl LineCutter {
    pub(super) fn write(&mut self, text: &str, mut take: impl FnMut(Piece<'_>)) {
        for part in text.split_inclusive('\n') {
            let (part, ends) = match part.strip_suffix('\n') {
                Some(part) => (part, true),
                None => (part, false),
            };
            self.line.push_str(part);
            self.cut_long(&mut take);
            if ends {
                self.emit(true, &mut take);
            }
        }
    }

    pub(super) fn finish(&mut self, mut take: impl FnMut(Piece<'_>)) {
        if !self.line.is_empty() || self.is_continued {
            self.emit(true, &mut take);
        }
    }

    fn cut_long(&mut self, take: &mut impl FnMut(Piece<'_>)) {
        let mut from = 0;
        while self.line.len() - from > LINE_BYTES_MAX {
            let to = self.line.floor_char_boundary(from + LINE_BYTES_MAX);
            take(Piece {
                text: &self.line[from..to],
                begins: !self.is_continued,
                ends: false,
            });
            self.is_continued = true;
            from = to;
        }
        self.line.drain(..from);
    }

    fn emit(&mut self, ends: bool, take: &mut impl FnMut(Piece<'_>)) {
        take(Piece {
            text: &self.line,
            begins: !self.is_continued,
            ends,
        });
        self.line.clear();
        self.is_continued = !ends;
    }
}
