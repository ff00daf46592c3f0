//! What comes out: a closed set of small messages, parsed without trust.

use std::io::{self, Write};

use super::write_frame;
use crate::outcome::LOG_CHUNK_MAX;
use crate::{Digest, StepExit};

/// Largest message from the inside.
pub(crate) const REPORT_MAX: usize = LOG_CHUNK_MAX + 8;
/// Longest reason text.
const REASON_MAX: usize = 1024;

/// One message from the supervisor. Numbers are indexes into the job's lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report<'a> {
    /// The supervisor has read the job; whether Landlock restricts the steps.
    Ready {
        landlock: bool,
    },
    StepStarted {
        step: u16,
    },
    Log {
        step: u16,
        stderr: bool,
        bytes: &'a [u8],
    },
    StepEnded {
        step: u16,
        exit: StepExit,
    },
    ArtifactChunk {
        artifact: u16,
        bytes: &'a [u8],
    },
    ArtifactEnd {
        artifact: u16,
    },
    ArtifactMissing {
        artifact: u16,
    },
    ArtifactTooLarge {
        artifact: u16,
    },
    Paused {
        step: u16,
    },
    InputMismatch {
        input: u16,
        found: Digest,
    },
    InputRefused {
        input: u16,
        reason: &'a str,
    },
    /// The last message.
    Done(DoneHow),
}

/// How the supervisor came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DoneHow {
    /// Nothing more to do, or a step, input or artifact that was reported before ended it.
    Finished,
    /// It was interrupted.
    Interrupted,
}

/// A message that breaks the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadReport(pub(crate) &'static str);

impl Report<'_> {
    pub(crate) fn write(&self, socket: &mut impl Write) -> io::Result<()> {
        let (kind, head, body) = self.parts();
        write_frame(socket, kind, &head, body)
    }

    fn parts(&self) -> (u8, Vec<u8>, &[u8]) {
        let of = |number: u16| number.to_le_bytes().to_vec();
        match self {
            Self::Ready { landlock } => (1, vec![u8::from(*landlock)], &[]),
            Self::StepStarted { step } => (2, of(*step), &[]),
            Self::Log {
                step,
                stderr,
                bytes,
            } => {
                let [low, high] = step.to_le_bytes();
                (3, vec![low, high, u8::from(*stderr)], bytes)
            }
            Self::StepEnded { step, exit } => {
                let (kind, value) = match exit {
                    StepExit::Code(code) => (0, *code),
                    StepExit::Signal(signal) => (1, *signal),
                    StepExit::NotStarted => (2, 0),
                };
                let mut head = of(*step);
                head.push(kind);
                head.extend_from_slice(&value.to_le_bytes());
                (4, head, &[])
            }
            Self::ArtifactChunk { artifact, bytes } => (5, of(*artifact), bytes),
            Self::ArtifactEnd { artifact } => (6, of(*artifact), &[]),
            Self::ArtifactMissing { artifact } => (7, of(*artifact), &[]),
            Self::ArtifactTooLarge { artifact } => (8, of(*artifact), &[]),
            Self::Paused { step } => (9, of(*step), &[]),
            Self::InputMismatch { input, found } => (10, of(*input), found.as_bytes()),
            Self::InputRefused { input, reason } => {
                let end = reason.floor_char_boundary(REASON_MAX);
                (11, of(*input), &reason.as_bytes()[..end])
            }
            Self::Done(how) => (12, vec![u8::from(*how == DoneHow::Interrupted)], &[]),
        }
    }
}

impl<'a> Report<'a> {
    /// Parses one message. Indexes are checked by the receiver, who has the lists.
    pub(crate) fn parse(kind: u8, payload: &'a [u8]) -> Result<Self, BadReport> {
        let mut fields = Fields(payload);
        let report = match kind {
            1 => Self::Ready {
                landlock: fields.flag()?,
            },
            2 => Self::StepStarted {
                step: fields.number()?,
            },
            3 => Self::Log {
                step: fields.number()?,
                stderr: fields.flag()?,
                bytes: fields.rest(),
            },
            4 => Self::StepEnded {
                step: fields.number()?,
                exit: fields.exit()?,
            },
            5 => Self::ArtifactChunk {
                artifact: fields.number()?,
                bytes: fields.rest(),
            },
            6 => Self::ArtifactEnd {
                artifact: fields.number()?,
            },
            7 => Self::ArtifactMissing {
                artifact: fields.number()?,
            },
            8 => Self::ArtifactTooLarge {
                artifact: fields.number()?,
            },
            9 => Self::Paused {
                step: fields.number()?,
            },
            10 => Self::InputMismatch {
                input: fields.number()?,
                found: Digest::from_bytes(fields.take()?),
            },
            11 => Self::InputRefused {
                input: fields.number()?,
                reason: fields.text()?,
            },
            12 if fields.flag()? => Self::Done(DoneHow::Interrupted),
            12 => Self::Done(DoneHow::Finished),
            _ => return Err(BadReport("a message of unknown kind")),
        };
        if fields.0.is_empty() {
            Ok(report)
        } else {
            Err(BadReport("a message with extra bytes"))
        }
    }
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadReport> {
        let (head, rest) = self
            .0
            .split_first_chunk()
            .ok_or(BadReport("a message too short"))?;
        self.0 = rest;
        Ok(*head)
    }

    fn number(&mut self) -> Result<u16, BadReport> {
        self.take().map(u16::from_le_bytes)
    }

    fn flag(&mut self) -> Result<bool, BadReport> {
        match self.take()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(BadReport("a flag that is neither 0 nor 1")),
        }
    }

    fn exit(&mut self) -> Result<StepExit, BadReport> {
        let [kind] = self.take()?;
        let value = i32::from_le_bytes(self.take()?);
        match kind {
            0 => Ok(StepExit::Code(value)),
            1 => Ok(StepExit::Signal(value)),
            2 => Ok(StepExit::NotStarted),
            _ => Err(BadReport("an exit of unknown kind")),
        }
    }

    fn text(&mut self) -> Result<&'a str, BadReport> {
        let bytes = self.rest();
        if bytes.len() > REASON_MAX {
            return Err(BadReport("a reason that is too long"));
        }
        std::str::from_utf8(bytes).map_err(|_| BadReport("a reason that is not UTF-8"))
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_is_parsed_back() {
        let reports = [
            Report::Ready { landlock: true },
            Report::StepStarted { step: 3 },
            Report::Log {
                step: 3,
                stderr: true,
                bytes: b"text",
            },
            Report::StepEnded {
                step: 3,
                exit: StepExit::Code(-1),
            },
            Report::StepEnded {
                step: 3,
                exit: StepExit::Signal(9),
            },
            Report::StepEnded {
                step: 3,
                exit: StepExit::NotStarted,
            },
            Report::ArtifactChunk {
                artifact: 1,
                bytes: b"",
            },
            Report::ArtifactEnd { artifact: 1 },
            Report::ArtifactMissing { artifact: 1 },
            Report::ArtifactTooLarge { artifact: 1 },
            Report::Paused { step: 0 },
            Report::InputMismatch {
                input: 2,
                found: Digest::of(b"x"),
            },
            Report::InputRefused {
                input: 2,
                reason: "entry `x`",
            },
            Report::Done(DoneHow::Finished),
            Report::Done(DoneHow::Interrupted),
        ];
        for report in reports {
            let (kind, head, body) = report.parts();
            let payload = [&head, body].concat();
            assert_eq!(Report::parse(kind, &payload), Ok(report));
        }
    }

    #[test]
    fn a_malformed_report_is_refused() {
        for (kind, payload) in [
            (0, &[][..]),
            (13, &[]),
            (1, &[2]),
            (1, &[1, 1]),
            (2, &[1]),
            (3, &[1, 0]),
            (4, &[1, 0, 3, 0, 0, 0, 0]),
            (6, &[1, 0, 0]),
            (10, &[1, 0, 7]),
            (11, &[1, 0, 0xff]),
            (12, &[]),
        ] {
            assert!(Report::parse(kind, payload).is_err(), "{kind} {payload:?}");
        }
    }

    #[test]
    fn a_long_reason_is_cut_at_a_character() {
        let long = "ä".repeat(REASON_MAX);
        let report = Report::InputRefused {
            input: 0,
            reason: &long,
        };
        let (kind, head, body) = report.parts();
        assert!(Report::parse(kind, &[&head, body].concat()).is_ok());
    }
}
