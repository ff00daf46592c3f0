-- What a run is judged by is pinned with everything else it executes (S-RUN-2): the versions of policy
-- sets that applied when it was created, and the digest over their bundles. A run from before has none,
-- and its digest is that of the empty list.

alter table record.runs
    add column policies jsonb not null default '[]'
        check (jsonb_typeof(policies) = 'array' and jsonb_array_length(policies) <= 32),
    add column policies_digest text not null
        default 'f5465fe623f0e224ca3c7c98d778f6fdebf176f967cbe9b326c6c05797331c7b'
        check (policies_digest ~ '^[0-9a-f]{64}$');

-- Every pinned version is one of the organization's, with exactly this bundle and this content.
create function record.require_policy_versions(the_organization text, pinned jsonb) returns void
language plpgsql as $$
begin
    if exists (select from jsonb_array_elements(pinned) as one where not exists (
            select from record.policy_set_versions version
            where version.organization_id = the_organization
              and version.policy_set_id = one ->> 'set'
              and version.number = (one ->> 'version')::integer
              and encode(version.bundle, 'hex') = one ->> 'bundle'
              and version.object_id = one ->> 'object')) then
        raise exception 'a run pins policies that are not there' using errcode = 'SS004';
    end if;
end
$$;

create or replace function log.follow_run(event log.events) returns void language plpgsql as $$
declare
    facts jsonb;
    policies jsonb;
    the_run record.runs;
begin
    if event.event_type = 'run_queued' then
        facts := event.payload -> 'facts';
        policies := facts -> 'pins' -> 'policies';
        perform record.require_policy_versions(facts ->> 'organization', policies -> 'sets');
        insert into record.runs (run_id, organization_id, project_id, workspace_id, kind,
            configuration_version_id, input_snapshot_id, configuration_digest, inputs_digest,
            tofu_version, region, platform, policies, policies_digest, auto_apply, created_at)
        values (event.aggregate_id, facts ->> 'organization', facts ->> 'project', facts ->> 'workspace',
            facts ->> 'kind', facts ->> 'configuration_version', facts ->> 'input_snapshot',
            facts -> 'pins' ->> 'configuration', facts -> 'pins' ->> 'inputs',
            facts -> 'pins' ->> 'tofu_version', facts -> 'pins' ->> 'region', facts -> 'pins' ->> 'platform',
            policies -> 'sets', policies ->> 'digest',
            (event.payload ->> 'auto_apply')::boolean, (facts ->> 'created_at')::timestamptz);
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
            'policy_override_expired', 'apply_succeeded', 'apply_failed', 'recovery_resolved', 'run_canceled',
            'run_superseded', 'run_finished_without_changes', 'speculative_run_finished', 'run_failed') then
        update record.runs set ended_at = event.recorded_at where run_id = the_run.run_id;
    end if;
    -- What judged a run is what it has pinned.
    if event.event_type = 'policy_evaluated'
            and event.payload -> 'result' ->> 'bundle' is distinct from the_run.policies_digest then
        raise exception 'run % is judged by what it has pinned', event.aggregate_id using errcode = 'SS004';
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
