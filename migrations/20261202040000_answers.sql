-- Requests that may be sent again: the answers kept for them, and what keeps one from being carried
-- out twice. And where a user belongs.

-- One row a request that named itself. Without an answer somebody is carrying it out.
create table record.answers (
    organization_id text not null references record.organizations,
    request text not null check (request ~ '^[0-9a-f]{64}$'),
    body_sha256 bytea not null check (length(body_sha256) = 32),
    claimed_at timestamptz not null default clock_timestamp(),
    status smallint check (status between 200 and 299),
    answer text check (octet_length(answer) <= 1048576),
    primary key (organization_id, request),
    constraint answered_whole check ((status is null) = (answer is null))
);
create index answers_by_age on record.answers (organization_id, claimed_at);
grant select, insert, update, delete on record.answers to stackship_api;

-- A named request tells each of its facts once, whatever becomes of its row above.
create unique index facts_once on log.events (command_id, event_type)
    where aggregate_type = 'fact' and command_id like 'request-%';

-- The organization that made a service account. People are made by the operator and have none. A
-- login is unique among its own, so that nobody learns of a login elsewhere by trying to take it.
alter table record.users add column created_in text references record.organizations;
update record.users set created_in = event.organization_id
    from log.events event
    where event.aggregate_type = 'fact' and event.event_type = 'user_created'
      and event.payload ->> 'user' = users.user_id;
alter table record.users drop constraint users_login_key;
create unique index users_login_key on record.users (login) where created_in is null;
create unique index member_login_taken on record.users (created_in, login) where created_in is not null;
