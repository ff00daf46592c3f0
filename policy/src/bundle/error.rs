//! Why a bundle is refused: which file or field, and what to do about it.

/// Why a bundle is refused. Each text names the file or field and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// Not an archive.
    #[error(
        "the upload is not a gzip-compressed tar archive ({detail}). \
         Make one with `tar -czf bundle.tar.gz -C DIRECTORY .`"
    )]
    Archive {
        /// What the reader met.
        detail: String,
    },
    /// Too many bytes.
    #[error("{what} is larger than {limit} bytes. Leave out what no policy needs, or split it")]
    TooLarge {
        /// What is too large.
        what: String,
        /// The limit.
        limit: usize,
    },
    /// Too many files.
    #[error("the bundle has more than {limit} files. Split it into several bundles")]
    TooManyFiles {
        /// The limit.
        limit: usize,
    },
    /// One file is not acceptable.
    #[error("file `{path}`: {problem}. {remedy}")]
    File {
        /// Its path in the archive.
        path: String,
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The manifest is not acceptable.
    #[error("manifest.json, `{field}`: {problem}. {remedy}")]
    Manifest {
        /// The field, as a path from the top.
        field: String,
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Bytes that were stored are not what this room stores.
    #[error("the stored bundle is not in its canonical form ({detail}). Upload it again")]
    Stored {
        /// What differs.
        detail: String,
    },
    /// The engine refuses a policy.
    #[error("file `{file}`: {detail}. Correct the policy and upload the bundle again")]
    Policy {
        /// The policy's file.
        file: String,
        /// What the engine says.
        detail: String,
    },
    /// Loading a policy takes more than the limits of an evaluation.
    #[error(
        "file `{file}`: loading it exceeds the limits of a policy evaluation ({detail}). \
         Simplify the policy: fewer nested collections, no unbounded recursion"
    )]
    TooCostly {
        /// The policy's file, or the manifest when it is not known which.
        file: String,
        /// How the limited process ended.
        detail: String,
    },
    /// The limited process could not be started: nothing is known about the bundle.
    #[error("the bundle could not be checked: {0}. Try again")]
    NotStarted(#[from] crate::NotStarted),
}

impl BundleError {
    /// A stable code for the API.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Archive { .. } => "POLICY_BUNDLE_ARCHIVE_INVALID",
            Self::TooLarge { .. } => "POLICY_BUNDLE_TOO_LARGE",
            Self::TooManyFiles { .. } => "POLICY_BUNDLE_TOO_MANY_FILES",
            Self::File { .. } => "POLICY_BUNDLE_FILE_INVALID",
            Self::Manifest { .. } => "POLICY_BUNDLE_MANIFEST_INVALID",
            Self::Stored { .. } => "POLICY_BUNDLE_STORED_INVALID",
            Self::Policy { .. } => "POLICY_BUNDLE_POLICY_INVALID",
            Self::TooCostly { .. } => "POLICY_BUNDLE_TOO_COSTLY",
            Self::NotStarted(_) => "POLICY_EVALUATOR_UNAVAILABLE",
        }
    }

    pub(super) fn file(path: &str, problem: impl Into<String>, remedy: &'static str) -> Self {
        Self::File {
            path: crate::text::plain(path, super::PATH_CHARS_MAX),
            problem: problem.into(),
            remedy,
        }
    }

    pub(super) fn manifest(
        field: impl Into<String>,
        problem: impl Into<String>,
        remedy: &'static str,
    ) -> Self {
        Self::Manifest {
            field: field.into(),
            problem: problem.into(),
            remedy,
        }
    }
}
