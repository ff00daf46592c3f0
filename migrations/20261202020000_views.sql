-- The read models: written by the projector from the log, read by everybody else, rebuilt from zero
-- whenever their shape or their folds change. Nothing here decides anything. Every value comes from
-- events, times included, so that a rebuild gives the same bytes.
--
-- A rebuild copies these tables by `like … including all` into a schema of its own, fills them and
-- puts them in place of the old ones. What `like` does not copy (triggers, rights, storage
-- parameters) is in view.dress. Indexes have no names of their own here, so that the copies get the
-- same ones.

-- How far the read models have followed the log. `live` is what readers see; `rebuild` exists only
-- while a rebuild runs. Locking the row is holding the role of the projector.
create table view.checkpoints (
    name text primary key check (name in ('live', 'rebuild')),
    generation bigint not null check (generation > 0),
    epoch smallint not null default 0,
    transaction_id bigint not null default 0,
    global_position bigint not null default 0,
    -- How many events were applied; equal to the number of audit entries.
    applied bigint not null default 0 check (applied >= 0),
    -- When the newest applied event was recorded.
    updated_at timestamptz
);
insert into view.checkpoints (name, generation) values ('live', 1);

-- Everything the log knows about one run, as one document.
create table view.run_review (
    run_id text primary key,
    organization_id text not null,
    workspace_id text not null,
    last_sequence bigint not null check (last_sequence > 0),
    doc jsonb not null
);

-- One row a run, for lists.
create table view.run_inventory (
    run_id text primary key,
    organization_id text not null,
    project_id text not null,
    workspace_id text not null,
    status text not null,
    kind text not null,
    message text not null,
    source text not null,
    created_by text not null,
    -- Half of the paging key: stored once, to the microsecond, and never changed.
    created_at timestamptz not null,
    updated_at timestamptz not null,
    ended_at timestamptz,
    last_sequence bigint not null check (last_sequence > 0),
    check ((ended_at is not null) = (status in ('applied', 'no_changes', 'speculative_finished', 'failed',
        'discarded', 'expired', 'canceled', 'plan_credentials_required', 'recovered')))
);
create index on view.run_inventory (organization_id, created_at desc, run_id desc);
create index on view.run_inventory (organization_id, workspace_id, created_at desc, run_id desc);
-- Partial on purpose: over all rows, every change of a status would write into the index.
create index on view.run_inventory (organization_id, status, created_at desc, run_id desc) where ended_at is null;
create index on view.run_inventory (workspace_id) where ended_at is null;
create index on view.run_inventory (run_id) where ended_at is null;

-- Lock, queue and state of a workspace. No row: nothing has happened to it yet.
create table view.workspace_status (
    workspace_id text primary key,
    organization_id text not null,
    holder_run text,
    holder_user text,
    -- The newest fence, whether the lock is held or not.
    fence bigint not null check (fence >= 0),
    since timestamptz,
    reason text,
    -- Ids of the runs that wait, first come first.
    queue jsonb not null check (jsonb_typeof(queue) = 'array'),
    state_version_id text,
    state_serial bigint,
    state_lineage text,
    state_digest text,
    last_sequence bigint not null check (last_sequence > 0),
    check (holder_run is null or holder_user is null),
    check ((since is not null) = (holder_run is not null or holder_user is not null)),
    check ((state_version_id is null) = (state_serial is null)),
    check ((state_version_id is null) = (state_lineage is null)),
    check ((state_version_id is null) = (state_digest is null))
);

-- Every event of an organization in one order, each chained to the one before.
create table view.audit_entries (
    organization_id text not null,
    number bigint not null check (number > 0),
    aggregate_type text not null,
    aggregate_id text not null,
    sequence bigint not null,
    event_type text not null,
    event_version text not null,
    actor text not null,
    request_id text not null,
    command_id text not null,
    recorded_at timestamptz not null,
    global_position bigint not null,
    hash bytea not null check (length(hash) = 32),
    primary key (organization_id, number),
    unique (aggregate_type, aggregate_id, sequence)
);

-- Where each organization's chain ends.
create table view.audit_heads (
    organization_id text primary key,
    number bigint not null check (number > 0),
    hash bytea not null check (length(hash) = 32)
);

create function view.refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'the audit is append-only: % on % refused', tg_op, tg_table_name
        using errcode = 'SS002';
end
$$;

-- What `like` does not copy. Entries of the audit are never changed in place, not even by a rebuild:
-- only the owner can put another table there.
create function view.dress(target text) returns void language plpgsql as $$
begin
    -- Documents grow with their run; room in the page keeps updates off the index.
    execute format('alter table %I.run_review set (fillfactor = 80)', target);
    execute format('alter table %I.run_inventory set (fillfactor = 80)', target);
    execute format('alter table %I.workspace_status set (fillfactor = 80)', target);
    execute format('create trigger audit_append_only before update or delete on %I.audit_entries
        for each row execute function view.refuse_change()', target);
    execute format('create trigger audit_no_truncate before truncate on %I.audit_entries
        for each statement execute function view.refuse_change()', target);
    execute format('grant select on %1$I.run_review, %1$I.run_inventory, %1$I.workspace_status, %1$I.audit_entries,
        %1$I.audit_heads to stackship_api, stackship_projector, stackship_auditor', target);
    execute format('grant insert, update on %1$I.run_review, %1$I.run_inventory, %1$I.workspace_status, %1$I.audit_heads
        to stackship_projector', target);
    execute format('grant insert on %I.audit_entries to stackship_projector', target);
end
$$;
revoke execute on function view.dress(text) from public;
select view.dress('view');

grant select on view.checkpoints to stackship_api, stackship_projector, stackship_auditor;
grant update on view.checkpoints to stackship_projector;
