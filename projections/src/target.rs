//! Where rows are written: the read models that everybody sees, or the copies of a rebuild.

/// The schema that a rebuild fills.
pub(crate) const NEXT_SCHEMA: &str = "view_next";

/// Which set of tables a batch goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The tables that are read.
    Live,
    /// The tables of a running rebuild.
    Next,
}

impl Target {
    /// The name of its row in `view.checkpoints`.
    pub(crate) const fn checkpoint(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Next => "rebuild",
        }
    }

    /// A statement in which `{view}` stands for the schema.
    pub(crate) fn sql(self, statement: &'static str) -> String {
        let schema = match self {
            Self::Live => "view",
            Self::Next => NEXT_SCHEMA,
        };
        statement.replace("{view}", schema)
    }
}
