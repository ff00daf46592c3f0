-- The event log: the table of the event-store library with more columns, append-only by role and by
-- trigger. Readers order by (epoch, transaction_id, global_position) below the oldest transaction
-- that still runs; that order has no gaps.

create schema log;
create schema record;
create schema view;

-- Roles belong to the whole cluster, so they may exist already, and two databases may be migrated at
-- the same moment.
do $$
declare
    role_name text;
begin
    foreach role_name in array array['stackship_api', 'stackship_projector', 'stackship_auditor'] loop
        begin
            execute format('create role %I nologin', role_name);
        exception when duplicate_object or unique_violation then
            null;
        end;
    end loop;
end
$$;

create table log.store_epoch (
    only_row boolean primary key default true check (only_row),
    epoch smallint not null default 1
);
insert into log.store_epoch default values;

-- The epoch in which whatever is written now belongs. A function, because a default may not look
-- into a table by itself.
create function log.current_epoch() returns smallint language sql stable
set search_path = pg_catalog, pg_temp as $$
    select epoch from log.store_epoch
$$;

create table log.events (
    epoch smallint not null default log.current_epoch(),
    global_position bigint generated always as identity,
    transaction_id xid8 not null default pg_current_xact_id(),
    recorded_at timestamptz not null default clock_timestamp(),
    aggregate_type text not null
        check (aggregate_type in ('run', 'workspace', 'fact')),
    aggregate_id text not null
        check (length(aggregate_id) between 1 and 64),
    sequence bigint not null
        check (sequence between 1 and 2147483647),
    event_type text not null
        check (event_type ~ '^[a-z][a-z_]{1,63}$'),
    event_version text not null
        check (event_version ~ '^[0-9]{1,3}\.[0-9]{1,3}$'),
    payload jsonb not null
        check (jsonb_typeof(payload) = 'object' and pg_column_size(payload) <= 1048576),
    metadata jsonb not null
        check (jsonb_typeof(metadata) = 'object' and pg_column_size(metadata) <= 16384),
    organization_id text not null generated always as (metadata ->> 'organization_id') stored
        check (organization_id like 'org-%'),
    command_id text not null generated always as (metadata ->> 'command_id') stored
        check (length(command_id) between 1 and 128),
    primary key (aggregate_type, aggregate_id, sequence),
    constraint metadata_actor check (length(metadata ->> 'actor') between 1 and 64 and metadata ? 'actor'),
    constraint metadata_request check (length(metadata ->> 'request_id') between 1 and 128 and metadata ? 'request_id')
);
create unique index events_feed on log.events (epoch, transaction_id, global_position);
-- With the sequence, so that the newest event of a command is found without reading the others of its
-- aggregate, however many those are.
create index events_command on log.events (aggregate_type, aggregate_id, command_id, sequence);

create function log.refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'the event log is append-only: % on % refused', tg_op, tg_table_name
        using errcode = 'SS002';
end
$$;
create trigger events_append_only before update or delete on log.events
    for each row execute function log.refuse_change();
create trigger events_no_truncate before truncate on log.events
    for each statement execute function log.refuse_change();
