//! What the end of a limited process says. Only one shape of answer is an answer.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

use super::process::{Ended, How};
use crate::ErrorCode;
use crate::wire::{REPLY_BYTES_MAX, Reply};

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) code: ErrorCode,
    /// The position of the policy it happened to, as far as that is known.
    pub(super) policy: Option<usize>,
    pub(super) detail: String,
}

impl Failed {
    pub(super) fn error(detail: &str) -> Self {
        Self {
            code: ErrorCode::PolicyError,
            policy: None,
            detail: detail.to_owned(),
        }
    }

    pub(super) fn malformed(policy: Option<usize>) -> Self {
        Self {
            policy,
            ..Self::error("the limited process gave no well-formed result")
        }
    }
}

/// The reply of a process that was asked about `policies` policies.
pub(super) fn claim(ended: &Ended, policies: usize) -> Result<Reply, Failed> {
    let (at, reply) = read(&ended.output, policies);
    let failed = |code, detail: String| Failed {
        code,
        policy: at,
        detail,
    };
    match ended.how {
        How::TimedOut => Err(failed(
            ErrorCode::PolicyTimeout,
            "the limited process did not end in time and was killed".to_owned(),
        )),
        How::Oversize => Err(failed(
            ErrorCode::PolicyError,
            format!("the limited process wrote more than {REPLY_BYTES_MAX} bytes"),
        )),
        How::Exited(status) if !status.success() => {
            Err(failed(ErrorCode::PolicyCrashed, crash(status)))
        }
        How::Exited(_) => match reply {
            None | Some(Reply::Begins { .. }) => Err(Failed::malformed(at)),
            Some(Reply::Failed {
                policy: Some(position),
                ..
            }) if position >= policies => Err(Failed::malformed(at)),
            Some(Reply::Failed {
                code,
                policy,
                detail,
            }) => Err(Failed {
                code,
                policy,
                detail,
            }),
            Some(reply @ (Reply::Valid {} | Reply::Evaluated { .. })) => Ok(reply),
        },
    }
}

/// The policy that was begun last, and the reply, if every line is what it must be.
fn read(output: &[u8], policies: usize) -> (Option<usize>, Option<Reply>) {
    let mut begun = 0;
    let mut lines = output.split_inclusive(|byte| *byte == b'\n');
    let reply = loop {
        let line = lines.next().and_then(|line| line.strip_suffix(b"\n"));
        match line.and_then(|line| serde_json::from_slice(line).ok()) {
            Some(Reply::Begins { policy }) if policy == begun && policy < policies => begun += 1,
            reply => break reply,
        }
    };
    let reply = reply.filter(|_| lines.next().is_none());
    let complete = |reply: &Reply| matches!(reply, Reply::Failed { .. }) || begun == policies;
    (begun.checked_sub(1), reply.filter(complete))
}

fn crash(status: ExitStatus) -> String {
    let name = |number| Signal::try_from(number).map_or("an unknown signal", Signal::as_str);
    match (status.signal(), status.code()) {
        (Some(number), _) => format!(
            "the limited process was ended by {}: it used up its memory, stack or processor time",
            name(number)
        ),
        (None, Some(code)) => format!("the limited process failed with the code {code}"),
        (None, None) => "the limited process ended in an unknown way".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUCCESS: i32 = 0;

    fn ended(output: &str, raw: i32) -> Ended {
        Ended {
            output: output.into(),
            how: How::Exited(ExitStatus::from_raw(raw)),
        }
    }

    const BEGINS: &str = "{\"kind\":\"begins\",\"policy\":0}\n";
    const VALID: &str = "{\"kind\":\"valid\"}\n";

    #[test]
    fn one_shape_of_answer_is_an_answer() {
        let good = format!("{BEGINS}{VALID}");
        assert_eq!(claim(&ended(&good, SUCCESS), 1), Ok(Reply::Valid {}));
        for bad in [
            String::new(),
            VALID.to_owned(),
            BEGINS.to_owned(),
            format!("{BEGINS}{BEGINS}{VALID}"),
            format!("{good}{VALID}"),
            format!("{good}x"),
            good.trim_end().to_owned(),
            format!("\n{good}"),
            format!("{BEGINS}{{\"kind\":\"valid\",\"more\":1}}\n"),
            format!(
                "{BEGINS}{{\"kind\":\"failed\",\"code\":\"policy_error\",\"policy\":1,\"detail\":\"\"}}\n"
            ),
        ] {
            let failed = claim(&ended(&bad, SUCCESS), 1).unwrap_err();
            assert_eq!(failed.code, ErrorCode::PolicyError, "{bad}");
        }
    }

    #[test]
    fn a_good_answer_of_a_process_that_ended_badly_is_no_answer() {
        let good = format!("{BEGINS}{VALID}");
        let signals = [
            Signal::SIGABRT,
            Signal::SIGXCPU,
            Signal::SIGKILL,
            Signal::SIGSYS,
        ];
        for raw in signals
            .map(|signal| signal as i32)
            .into_iter()
            .chain([1 << 8, 101 << 8])
        {
            let failed = claim(&ended(&good, raw), 1).unwrap_err();
            assert_eq!(failed.code, ErrorCode::PolicyCrashed, "{raw}");
            assert_eq!(failed.policy, Some(0));
        }
        for (how, code) in [
            (How::TimedOut, ErrorCode::PolicyTimeout),
            (How::Oversize, ErrorCode::PolicyError),
        ] {
            let output = good.clone().into();
            assert_eq!(claim(&Ended { output, how }, 1).unwrap_err().code, code);
        }
    }
}
