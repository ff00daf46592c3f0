-- The queue and what people see of it: superseding by ref, turns between applies and plans, and the
-- states that failed applies left.

-- What a run was made from, when its source knows: a newer speculative run of the same ref takes the
-- place of an older one. No run had one before this.
alter table record.runs add column git_ref text check (length(git_ref) between 1 and 255);
create index runs_by_ref on record.runs (workspace_id, git_ref, run_id)
    where ended_at is null and kind = 'speculative' and git_ref is not null;

create or replace function log.follow_run(event log.events) returns void language plpgsql as $$
declare
    facts jsonb;
    the_run record.runs;
begin
    if event.event_type = 'run_queued' then
        facts := event.payload -> 'facts';
        insert into record.runs (run_id, organization_id, project_id, workspace_id, kind,
            configuration_version_id, input_snapshot_id, configuration_digest, inputs_digest,
            tofu_version, region, platform, auto_apply, created_at, git_ref)
        values (event.aggregate_id, facts ->> 'organization', facts ->> 'project', facts ->> 'workspace',
            facts ->> 'kind', facts ->> 'configuration_version', facts ->> 'input_snapshot',
            facts -> 'pins' ->> 'configuration', facts -> 'pins' ->> 'inputs',
            facts -> 'pins' ->> 'tofu_version', facts -> 'pins' ->> 'region', facts -> 'pins' ->> 'platform',
            (event.payload ->> 'auto_apply')::boolean, (facts ->> 'created_at')::timestamptz,
            facts -> 'source' ->> 'git_ref');
        if facts ->> 'organization' is distinct from event.metadata ->> 'organization_id' then
            raise exception 'run % belongs to another organization', event.aggregate_id using errcode = 'SS004';
        end if;
        return;
    end if;
    select * into the_run from record.runs where run_id = event.aggregate_id;
    if not found then
        raise exception 'run % has no first event', event.aggregate_id using errcode = 'SS004';
    end if;
    if the_run.organization_id is distinct from event.metadata ->> 'organization_id' then
        raise exception 'run % belongs to another organization', event.aggregate_id using errcode = 'SS004';
    end if;
    if the_run.ended_at is not null then
        raise exception 'run % has ended', event.aggregate_id using errcode = 'SS004';
    end if;
    if event.event_type in ('plan_failed', 'plan_credentials_missing', 'run_discarded', 'approval_expired',
            'apply_succeeded', 'apply_failed', 'recovery_resolved', 'run_canceled', 'run_superseded',
            'run_finished_without_changes', 'speculative_run_finished', 'run_failed') then
        update record.runs set ended_at = event.recorded_at where run_id = the_run.run_id;
    end if;
    if event.event_type = 'lock_granted' then
        perform record.require_fence(the_run.workspace_id, the_run.run_id, (event.payload ->> 'fence')::bigint);
        update record.runs set fence = (event.payload ->> 'fence')::bigint where run_id = the_run.run_id;
    elsif event.event_type in ('plan_started', 'plan_recorded', 'approval_requested', 'run_approved',
            'apply_started', 'apply_succeeded', 'apply_failed', 'recovery_required')
            and the_run.kind = 'plan_and_apply' then
        perform record.require_fence(the_run.workspace_id, the_run.run_id, the_run.fence);
    end if;
    if event.event_type = 'apply_started' then
        perform record.require_fence(the_run.workspace_id, the_run.run_id, (event.payload ->> 'fence')::bigint);
        if the_run.kind <> 'plan_and_apply' then
            raise exception 'a speculative run is never applied' using errcode = 'SS004';
        end if;
    end if;
end
$$;

-- The newest leases of a region and platform say whose turn is next: an apply's or a plan's.
create index attempts_by_lease on record.attempts (region, platform, leased_at desc)
    where leased_at is not null;
-- The open attempts of one run, however many others are open.
create index attempts_open on record.attempts (run_id) where closed_at is null;

-- Rows that were there say nothing of what was left: the events before this did not tell.
alter table view.workspace_status add column left_behind jsonb not null default '[]'
    check (jsonb_typeof(left_behind) = 'array');
