//! Times between PostgreSQL and the domain: `timestamptz` is microseconds since 2000.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgTypeInfo, PgValueFormat, PgValueRef};
use sqlx::{Decode, Encode, Postgres, Type};
use stackship_domain::Timestamp;

/// Microseconds from 1970 to 2000.
const POSTGRES_EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;

/// A time as PostgreSQL keeps it, to the microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DbTime(pub Timestamp);

impl DbTime {
    /// The time itself.
    pub const fn get(self) -> Timestamp {
        self.0
    }
}

impl From<Timestamp> for DbTime {
    fn from(time: Timestamp) -> Self {
        Self(time)
    }
}

impl Type<Postgres> for DbTime {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("timestamptz")
    }
}

impl Encode<'_, Postgres> for DbTime {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let microseconds = self.0.as_microsecond() - POSTGRES_EPOCH_MICROSECONDS;
        Encode::<Postgres>::encode(microseconds, buffer)
    }
}

impl<'r> Decode<'r, Postgres> for DbTime {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        match value.format() {
            PgValueFormat::Binary => {
                let microseconds = <i64 as Decode<Postgres>>::decode(value)?;
                Ok(Self(Timestamp::from_microsecond(
                    microseconds + POSTGRES_EPOCH_MICROSECONDS,
                )?))
            }
            PgValueFormat::Text => Err("a time is read in binary form".into()),
        }
    }
}
