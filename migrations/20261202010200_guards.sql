-- The guards: what the database refuses whoever asks. They run inside the transaction of the write
-- they judge. SQLSTATE SS001: stale fence; SS002: append-only; SS003: pinned; SS004: not allowed now.

-- The lock row of a workspace, held by this run under this fence, or an error. Taking it FOR SHARE
-- makes a concurrent release wait until the write that relied on it has committed.
create function record.require_fence(the_workspace text, the_run text, the_fence bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    held record.workspace_locks;
begin
    select * into held from record.workspace_locks where workspace_id = the_workspace for share;
    if not found or held.run_id is distinct from the_run or held.fence is distinct from the_fence then
        raise exception 'stale fence: % presented %, the workspace is at % held by %',
            the_run, the_fence, held.fence, coalesce(held.run_id, held.user_id, 'nobody')
            using errcode = 'SS001';
    end if;
end
$$;

create function log.follow_run(event log.events) returns void language plpgsql as $$
declare
    facts jsonb;
    the_run record.runs;
begin
    if event.event_type = 'run_queued' then
        facts := event.payload -> 'facts';
        insert into record.runs (run_id, organization_id, project_id, workspace_id, kind,
            configuration_version_id, input_snapshot_id, configuration_digest, inputs_digest,
            tofu_version, region, platform, auto_apply, created_at)
        values (event.aggregate_id, facts ->> 'organization', facts ->> 'project', facts ->> 'workspace',
            facts ->> 'kind', facts ->> 'configuration_version', facts ->> 'input_snapshot',
            facts -> 'pins' ->> 'configuration', facts -> 'pins' ->> 'inputs',
            facts -> 'pins' ->> 'tofu_version', facts -> 'pins' ->> 'region', facts -> 'pins' ->> 'platform',
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

create function log.follow_workspace(event log.events) returns void language plpgsql as $$
declare
    the_fence bigint := (event.payload ->> 'fence')::bigint;
    holder jsonb := event.payload -> 'holder';
    touched integer;
begin
    if not exists (select from record.workspaces where workspace_id = event.aggregate_id
            and organization_id = event.metadata ->> 'organization_id') then
        raise exception 'there is no workspace % in this organization', event.aggregate_id using errcode = 'SS004';
    end if;
    if event.event_type = 'lock_acquired' then
        insert into record.workspace_locks (workspace_id, fence, run_id, user_id, reason, since)
        values (event.aggregate_id, the_fence, holder ->> 'run', holder ->> 'user', event.payload ->> 'reason',
            clock_timestamp())
        on conflict (workspace_id) do update
            set fence = excluded.fence, run_id = excluded.run_id, user_id = excluded.user_id,
                reason = excluded.reason, since = excluded.since
            where record.workspace_locks.fence < excluded.fence
              and record.workspace_locks.run_id is null and record.workspace_locks.user_id is null;
        get diagnostics touched = row_count;
        if touched <> 1 then
            raise exception 'the lock of % cannot be acquired with fence %', event.aggregate_id, the_fence
                using errcode = 'SS001';
        end if;
    elsif event.event_type = 'lock_released' then
        update record.workspace_locks set run_id = null, user_id = null, reason = null, since = clock_timestamp()
        where workspace_id = event.aggregate_id and fence = the_fence
          and run_id is not distinct from (holder ->> 'run') and user_id is not distinct from (holder ->> 'user')
          and (run_id is not null or user_id is not null);
        get diagnostics touched = row_count;
        if touched <> 1 then
            raise exception 'the lock of % is not held with fence %', event.aggregate_id, the_fence
                using errcode = 'SS001';
        end if;
    elsif event.event_type = 'state_published' then
        perform record.require_fence(event.aggregate_id, event.payload ->> 'run', the_fence);
        update record.state_versions set status = 'published', published_at = clock_timestamp()
        where state_version_id = event.payload -> 'state' ->> 'version' and workspace_id = event.aggregate_id
          and run_id = event.payload ->> 'run' and fence = the_fence and status = 'staged'
          and encode(sha256, 'hex') = event.payload -> 'state' ->> 'digest'
          and serial = (event.payload -> 'state' ->> 'serial')::bigint
          and lineage = event.payload -> 'state' ->> 'lineage';
        get diagnostics touched = row_count;
        if touched <> 1 then
            raise exception 'state % is not staged by this run', event.payload -> 'state' ->> 'version'
                using errcode = 'SS004';
        end if;
        update record.workspaces set current_state_version_id = event.payload -> 'state' ->> 'version',
            updated_at = clock_timestamp()
        where workspace_id = event.aggregate_id;
    end if;
end
$$;

-- Runs with its owner's rights, so that no writer needs rights on the rows that follow the events.
create function log.follow_event() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
    if new.aggregate_type = 'run' then
        perform log.follow_run(new);
    elsif new.aggregate_type = 'workspace' then
        perform log.follow_workspace(new);
    end if;
    return null;
end
$$;
create trigger events_follow after insert on log.events
    for each row execute function log.follow_event();

-- An attempt of a run that holds a lock is leased, started and closed with a result only under the
-- current fence; what was offered does not change.
create function record.guard_attempt() returns trigger language plpgsql as $$
begin
    if tg_op = 'UPDATE' then
        if (new.attempt_id, new.run_id, new.phase, new.number, new.workspace_id, new.organization_id)
                is distinct from (old.attempt_id, old.run_id, old.phase, old.number, old.workspace_id, old.organization_id)
            or new.fence is distinct from old.fence or new.binding is distinct from old.binding
            or new.predecessor is distinct from old.predecessor then
            raise exception 'what attempt % was offered for cannot change', old.attempt_id using errcode = 'SS003';
        end if;
        if old.closed_at is not null then
            raise exception 'attempt % is closed', old.attempt_id using errcode = 'SS004';
        end if;
        if new.tofu_started_at is not null and old.tofu_started_at is null and new.cancel_requested_at is not null then
            raise exception 'attempt % was asked to stop', old.attempt_id using errcode = 'SS004';
        end if;
    end if;
    if new.fence is not null and (
            tg_op = 'INSERT'
            or new.runner_id is distinct from old.runner_id
            or new.tofu_started_at is distinct from old.tofu_started_at
            or new.result is distinct from old.result) then
        perform record.require_fence(new.workspace_id, new.run_id, new.fence);
    end if;
    return new;
end
$$;
create trigger attempts_guarded before insert or update on record.attempts
    for each row execute function record.guard_attempt();

-- State is written only by an applying run, under the current fence, while its attempt is leased.
create function record.guard_state_version() returns trigger language plpgsql as $$
begin
    if tg_op = 'UPDATE' then
        if (new.state_version_id, new.workspace_id, new.run_id, new.fence, new.serial, new.lineage, new.md5)
                is distinct from
           (old.state_version_id, old.workspace_id, old.run_id, old.fence, old.serial, old.lineage, old.md5) then
            raise exception 'state % cannot change', old.state_version_id using errcode = 'SS003';
        end if;
        if old.object_id is not null and new.object_id is distinct from old.object_id then
            raise exception 'the bytes of state % cannot change', old.state_version_id using errcode = 'SS003';
        end if;
        if old.status = 'published' and new.status <> 'published' then
            raise exception 'state % stays published', old.state_version_id using errcode = 'SS003';
        end if;
    end if;
    if tg_op = 'UPDATE' and new.status = 'published' and old.status <> 'published'
            and current_user = 'stackship_api' then
        raise exception 'state % is published by the log alone', old.state_version_id using errcode = 'SS004';
    end if;
    if tg_op = 'INSERT' and new.status <> 'pending' then
        raise exception 'state % begins as pending', new.state_version_id using errcode = 'SS004';
    end if;
    if tg_op = 'INSERT' or new.object_id is distinct from old.object_id then
        perform record.require_fence(new.workspace_id, new.run_id, new.fence);
        if not exists (select from record.attempts where run_id = new.run_id and phase = 'apply'
                and fence = new.fence and runner_id is not null and closed_at is null) then
            raise exception 'no live apply of % writes state', new.run_id using errcode = 'SS001';
        end if;
    end if;
    return new;
end
$$;
create trigger state_versions_guarded before insert or update on record.state_versions
    for each row execute function record.guard_state_version();
create trigger state_versions_kept before delete on record.state_versions
    for each row execute function log.refuse_change();
