//! The whole chain of an organization as lines, part by part. Between two parts nothing is held but
//! the place: no connection, no snapshot. The chain only grows, so where it ended when the export
//! began stays true, whatever is appended meanwhile.

use sha2::{Digest as _, Sha256};
use sqlx::PgPool;
use stackship_domain::ids::OrganizationId;
use stackship_domain::{Sha256Digest, Timestamp};
use stackship_store::StoreError;

use super::line::{self, ExportHead, HeadLine};
use super::stored::read_part;
use super::{CHAIN_START, CHAIN_VERSION, online};
use crate::{ProjectionError, Views};

/// An export under way.
#[derive(Debug)]
pub struct AuditExport {
    pool: PgPool,
    head: ExportHead,
    place: Place,
    bytes: Sha256,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    /// Behind the entry with this number and hash.
    After(i64, Sha256Digest),
    /// Everything was handed out.
    End,
}

impl Views {
    /// Begins an export of everything that is in the organization's audit now.
    pub async fn audit_export(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Result<AuditExport, ProjectionError> {
        let organization = organization.to_string();
        let (position, hash) = online::head(&self.pool, &organization)
            .await?
            .map_or((0, CHAIN_START), |head| (head.number, head.hash));
        Ok(AuditExport {
            pool: self.pool.clone(),
            head: ExportHead {
                chain: CHAIN_VERSION.to_owned(),
                organization,
                position,
                hash,
                exported_at: now,
                sha256: CHAIN_START,
            },
            place: Place::After(0, CHAIN_START),
            bytes: Sha256::new(),
        })
    }
}

impl AuditExport {
    /// The next whole lines; `None` behind the head, which is the last one. A failure is final: what
    /// was handed out until then ends without a head and does not verify.
    pub async fn next_part(&mut self) -> Result<Option<Vec<u8>>, ProjectionError> {
        let Place::After(number, hash) = self.place else {
            return Ok(None);
        };
        // Whatever fails below must not be taken up again in the middle.
        self.place = Place::End;
        if number == self.head.position {
            if hash != self.head.hash {
                return Err(self.inconsistent(number));
            }
            let line = HeadLine::sealed(self.head.clone(), self.bytes.clone());
            return Ok(Some(line.map_err(StoreError::from)?));
        }
        let (first, last) = (number + 1, self.head.position);
        let entries = read_part(&self.pool, &self.head.organization, first, last).await?;
        if entries.is_empty() {
            return Err(self.inconsistent(first));
        }
        let (mut number, mut hash, mut part) = (number, hash, Vec::new());
        for entry in &entries {
            let line = entry.line(hash).ok();
            let line = line.filter(|line| line.position == number + 1);
            let line = line.ok_or_else(|| self.inconsistent(number + 1))?;
            part.extend(line::bytes(&line).map_err(StoreError::from)?);
            (number, hash) = (entry.number, entry.hash);
        }
        self.bytes.update(&part);
        self.place = Place::After(number, hash);
        Ok(Some(part))
    }

    fn inconsistent(&self, number: i64) -> ProjectionError {
        let organization = &self.head.organization;
        ProjectionError::row("audit_entries", format!("{organization}/{number}"))
    }
}
