//! The stream a client reads: a mark, perhaps lines it will drop, the log, and a mark at the end.
//! Offsets count everything.

use std::ops::Range;

use stackship_domain::run::Phase;

/// The first byte of a log.
const START: u8 = 0x02;
/// The last byte of a log; the client sees it only as the last byte of an answer.
const END: u8 = 0x03;
/// What stands before a plan's log.
const PLAN_HEAD: &[u8] = &[START];
/// What stands before an apply's log. The client drops the first three lines without looking, as
/// other servers begin with three lines of their own; OpenTofu in automation writes none to spare.
const APPLY_HEAD: &[u8] = b"\x02StackShip\nApplies the approved plan.\n\n";

/// A log as a stream of a known length.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    head: &'static [u8],
}

/// Which bytes of the stream an answer holds.
#[derive(Debug, PartialEq, Eq)]
pub struct Window {
    head: Range<usize>,
    /// Where in the log its bytes begin.
    pub log_offset: u64,
    /// How many bytes of the log fit.
    pub log_bytes_max: usize,
    /// How many bytes of the stream lie between its beginning and the log.
    head_bytes: u64,
    offset: u64,
    limit: usize,
}

impl Frame {
    /// The stream of a phase.
    pub const fn of(phase: Phase) -> Self {
        Self {
            head: match phase {
                Phase::Plan => PLAN_HEAD,
                Phase::Apply => APPLY_HEAD,
            },
        }
    }

    /// At most `limit` bytes from `offset` on.
    pub fn window(self, offset: u64, limit: usize) -> Window {
        let head_bytes = self.head.len() as u64;
        let begin = usize::try_from(offset.min(head_bytes)).unwrap_or(self.head.len());
        let head = begin..self.head.len().min(begin.saturating_add(limit));
        Window {
            log_offset: offset.saturating_sub(head_bytes),
            log_bytes_max: limit - head.len(),
            head,
            head_bytes,
            offset,
            limit,
        }
    }

    /// The answer: `log` are the window's bytes of the log, and `end` is the log's length once it is
    /// known that nothing will follow.
    pub fn answer(self, window: &Window, log: &[u8], end: Option<u64>) -> Vec<u8> {
        let mut answer = self.head[window.head.clone()].to_vec();
        answer.extend_from_slice(log);
        let next = window.offset + answer.len() as u64;
        let is_at_end = end.is_some_and(|total| next == window.head_bytes + total);
        if is_at_end && answer.len() < window.limit {
            answer.push(END);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The whole stream, read in pieces of `limit` bytes as the client does.
    fn read(phase: Phase, log: &[u8], limit: usize) -> Vec<Vec<u8>> {
        let frame = Frame::of(phase);
        let (mut answers, mut offset) = (Vec::new(), 0);
        loop {
            let window = frame.window(offset, limit);
            let from = usize::try_from(window.log_offset).unwrap().min(log.len());
            let part = &log[from..log.len().min(from + window.log_bytes_max)];
            let answer = frame.answer(&window, part, Some(log.len() as u64));
            if answer.is_empty() {
                return answers;
            }
            offset += answer.len() as u64;
            answers.push(answer);
        }
    }

    #[test]
    fn a_log_that_is_empty_is_two_marks() {
        assert_eq!(read(Phase::Plan, b"", 65_536), [vec![START, END]]);
    }

    #[test]
    fn nothing_but_a_finished_log_has_an_end() {
        let frame = Frame::of(Phase::Plan);
        let window = frame.window(0, 100);
        assert_eq!(frame.answer(&window, b"abc", None), b"\x02abc");
        assert_eq!(frame.answer(&window, b"abc", Some(4)), b"\x02abc");
        assert_eq!(frame.answer(&window, b"abc", Some(3)), b"\x02abc\x03");
    }

    #[test]
    fn beyond_the_end_there_is_nothing() {
        let frame = Frame::of(Phase::Plan);
        let window = frame.window(5, 100);
        assert!(frame.answer(&window, b"", Some(3)).is_empty());
    }

    #[test]
    fn the_client_drops_three_lines_of_an_apply_and_no_line_of_the_log() {
        let stream = read(Phase::Apply, b"first\nsecond\n", 65_536).concat();
        let text = String::from_utf8(stream[1..stream.len() - 1].to_vec()).unwrap();
        let kept: Vec<&str> = text.lines().skip(3).collect();
        assert_eq!(kept, ["first", "second"]);
    }

    proptest! {
        #[test]
        fn every_way_to_cut_a_stream_gives_the_same_stream(
            log in proptest::collection::vec(4_u8.., 0..300),
            limit in 1_usize..64,
            is_apply in any::<bool>(),
        ) {
            let phase = if is_apply { Phase::Apply } else { Phase::Plan };
            let answers = read(phase, &log, limit);
            prop_assert!(answers.iter().all(|answer| answer.len() <= limit));
            let whole = answers.concat();
            prop_assert_eq!(&whole, &read(phase, &log, 65_536).concat());
            prop_assert_eq!(whole.iter().position(|byte| *byte == END), Some(whole.len() - 1));
            prop_assert!(whole.ends_with(&[&log[..], &[END]].concat()));
        }
    }
}
