-- Step-up: when the person behind a token last proved again who they are, and how many tries failed.

create table record.step_ups (
    token_id text primary key references record.tokens,
    user_id text not null references record.users,
    method text not null check (method in ('password')),
    proved_at timestamptz not null default clock_timestamp()
);
create index step_ups_by_user on record.step_ups (user_id);

-- One row a user: the failures of the present window, so that guessing has a bound.
create table record.password_failures (
    user_id text primary key references record.users,
    failures integer not null check (failures > 0),
    since timestamptz not null default clock_timestamp()
);

grant select, insert, update, delete on record.step_ups, record.password_failures to stackship_api;
