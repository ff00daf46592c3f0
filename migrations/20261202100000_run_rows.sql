-- How the row of a run follows its events, in parts. Replaced as a whole by one migration after another,
-- the function easily lost what an earlier one had put in. From here on each part is replaced alone.

-- Everything that a run pins, from its first event.
create function log.pin_run(event log.events) returns void language plpgsql as $$
declare
    facts jsonb := event.payload -> 'facts';
    pins jsonb := event.payload -> 'facts' -> 'pins';
begin
    if facts ->> 'organization' is distinct from event.metadata ->> 'organization_id' then
        raise exception 'run % belongs to another organization', event.aggregate_id using errcode = 'SS004';
    end if;
    perform record.require_policy_versions(facts ->> 'organization', pins -> 'policies' -> 'sets');
    insert into record.runs (run_id, organization_id, project_id, workspace_id, kind,
        configuration_version_id, input_snapshot_id, configuration_digest, inputs_digest,
        tofu_version, region, platform, policies, policies_digest, auto_apply, created_at, git_ref)
    values (event.aggregate_id, facts ->> 'organization', facts ->> 'project', facts ->> 'workspace',
        facts ->> 'kind', facts ->> 'configuration_version', facts ->> 'input_snapshot',
        pins ->> 'configuration', pins ->> 'inputs', pins ->> 'tofu_version', pins ->> 'region',
        pins ->> 'platform', pins -> 'policies' -> 'sets', pins -> 'policies' ->> 'digest',
        (event.payload ->> 'auto_apply')::boolean, (facts ->> 'created_at')::timestamptz,
        facts -> 'source' ->> 'git_ref');
end
$$;

-- Whether nothing may follow an event of this name.
create function log.ends_run(event_type text) returns boolean language sql immutable as $$
    select event_type in ('plan_failed', 'plan_credentials_missing', 'run_discarded', 'approval_expired',
        'policy_override_expired', 'apply_succeeded', 'apply_failed', 'recovery_resolved', 'run_canceled',
        'run_superseded', 'run_finished_without_changes', 'speculative_run_finished', 'run_failed')
$$;
-- Tests hold it against the rules.
grant execute on function log.ends_run(text) to stackship_api;

-- What must hold for an event beside the rules that every event keeps.
create function log.judge_run_event(event log.events, the_run record.runs) returns void language plpgsql as $$
begin
    -- What judged a run is what it has pinned.
    if event.event_type = 'policy_evaluated'
            and event.payload -> 'result' ->> 'bundle' is distinct from the_run.policies_digest then
        raise exception 'run % is judged by what it has pinned', event.aggregate_id using errcode = 'SS004';
    end if;
    if event.event_type in ('lock_granted', 'apply_started') then
        perform record.require_fence(the_run.workspace_id, the_run.run_id, (event.payload ->> 'fence')::bigint);
    end if;
    if event.event_type in ('plan_started', 'plan_recorded', 'approval_requested', 'run_approved',
            'apply_started', 'apply_succeeded', 'apply_failed', 'recovery_required')
            and the_run.kind = 'plan_and_apply' then
        perform record.require_fence(the_run.workspace_id, the_run.run_id, the_run.fence);
    end if;
    if event.event_type = 'apply_started' and the_run.kind <> 'plan_and_apply' then
        raise exception 'a speculative run is never applied' using errcode = 'SS004';
    end if;
end
$$;

create or replace function log.follow_run(event log.events) returns void language plpgsql as $$
declare
    the_run record.runs;
begin
    if event.event_type = 'run_queued' then
        perform log.pin_run(event);
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
    perform log.judge_run_event(event, the_run);
    if log.ends_run(event.event_type) then
        update record.runs set ended_at = event.recorded_at where run_id = the_run.run_id;
    end if;
    if event.event_type = 'lock_granted' then
        update record.runs set fence = (event.payload ->> 'fence')::bigint where run_id = the_run.run_id;
    end if;
end
$$;
