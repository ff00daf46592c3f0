-- A state that a person rolled back to: the content of an older version under a higher serial. No run
-- wrote it, so it names its person, and what it restores. Only the log writes such a row.

alter table record.state_versions
    alter column run_id drop not null,
    alter column md5 drop not null,
    add column user_id text references record.users,
    add column restored_state_version_id text references record.state_versions,
    -- A run uploaded it and announced its MD5, or a person restored another version.
    add constraint made_by_run_or_person check (
        (run_id is not null and md5 is not null and user_id is null and restored_state_version_id is null)
        or (run_id is null and md5 is null and user_id is not null and restored_state_version_id is not null));

-- What a run writes is judged as before.
drop trigger state_versions_guarded on record.state_versions;
create trigger state_versions_guarded before insert or update on record.state_versions
    for each row when (new.run_id is not null) execute function record.guard_state_version();

create function record.guard_restored_state() returns trigger language plpgsql as $$
begin
    if tg_op = 'UPDATE' then
        raise exception 'state % cannot change', old.state_version_id using errcode = 'SS003';
    end if;
    if current_user = 'stackship_api' or new.status <> 'published' then
        raise exception 'state % is restored by the log alone', new.state_version_id using errcode = 'SS004';
    end if;
    return new;
end
$$;
create trigger state_versions_restored before insert or update on record.state_versions
    for each row when (new.run_id is null) execute function record.guard_restored_state();

-- Follows `state_rolled_back`, after log.follow_event has seen that the workspace is the organization's.
-- The person holds the lock under this fence; the state follows the current one; what it restores was a
-- state of the same workspace; its bytes are the workspace's own.
create function log.follow_rollback() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare
    rollback jsonb := new.payload -> 'rollback';
    state jsonb := new.payload -> 'rollback' -> 'state';
    the_user text := new.payload ->> 'by';
    the_fence bigint := (new.payload ->> 'fence')::bigint;
    held record.workspace_locks;
    head record.state_versions;
    restored record.state_versions;
    stored record.objects;
begin
    select * into held from record.workspace_locks where workspace_id = new.aggregate_id for share;
    if not found or held.user_id is distinct from the_user or held.fence is distinct from the_fence then
        raise exception 'stale fence: % presented %, the workspace is at % held by %',
            the_user, the_fence, held.fence, coalesce(held.run_id, held.user_id, 'nobody')
            using errcode = 'SS001';
    end if;
    select version.* into head from record.state_versions as version
        join record.workspaces as workspace on workspace.current_state_version_id = version.state_version_id
        where workspace.workspace_id = new.aggregate_id
          and version.state_version_id = rollback ->> 'predecessor';
    if not found then
        raise exception 'state % is not the current one', rollback ->> 'predecessor' using errcode = 'SS004';
    end if;
    if (state ->> 'serial')::bigint <= head.serial or state ->> 'lineage' is distinct from head.lineage then
        raise exception 'state % does not follow %', state ->> 'version', head.state_version_id
            using errcode = 'SS004';
    end if;
    select * into restored from record.state_versions
        where state_version_id = rollback ->> 'restored' and workspace_id = new.aggregate_id
          and status = 'published' and lineage = head.lineage and state_version_id <> head.state_version_id;
    if not found then
        raise exception 'state % cannot be restored', rollback ->> 'restored' using errcode = 'SS004';
    end if;
    select * into stored from record.objects
        where object_id = rollback ->> 'object' and organization_id = head.organization_id
          and workspace_id = new.aggregate_id and kind = 'state'
          and encode(sha256, 'hex') = state ->> 'digest';
    if not found then
        raise exception 'object % is not that state', rollback ->> 'object' using errcode = 'SS004';
    end if;
    insert into record.state_versions (state_version_id, organization_id, workspace_id, user_id,
        restored_state_version_id, fence, serial, lineage, status, object_id, json_object_id,
        outputs_object_id, sha256, bytes, staged_at, published_at)
    values (state ->> 'version', head.organization_id, new.aggregate_id, the_user,
        restored.state_version_id, the_fence, (state ->> 'serial')::bigint, head.lineage, 'published',
        stored.object_id, restored.json_object_id, restored.outputs_object_id, stored.sha256, stored.bytes,
        clock_timestamp(), clock_timestamp());
    update record.workspaces set current_state_version_id = state ->> 'version', updated_at = clock_timestamp()
        where workspace_id = new.aggregate_id;
    return null;
end
$$;
create trigger events_follow_rollback after insert on log.events for each row
    when (new.aggregate_type = 'workspace' and new.event_type = 'state_rolled_back')
    execute function log.follow_rollback();
