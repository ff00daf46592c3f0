-- Rights: what each role may do. INSERT on the log is granted column by column, so nobody who appends
-- can choose a position, a transaction or a time.

grant usage on schema log, record, view to stackship_api, stackship_projector, stackship_auditor;

grant select on log.events, log.store_epoch to stackship_api, stackship_projector, stackship_auditor;
grant insert (aggregate_type, aggregate_id, sequence, event_type, event_version, payload, metadata)
    on log.events to stackship_api;

grant select on all tables in schema record to stackship_api;
grant insert, update on record.organizations, record.users, record.projects, record.workspaces, record.variables,
    record.role_grants, record.tokens, record.objects, record.configuration_versions, record.input_snapshots,
    record.runners, record.attempts, record.state_versions, record.phase_logs, record.log_chunks to stackship_api;
grant delete on record.variables, record.role_grants, record.objects to stackship_api;
-- Published states and the current one follow the log; nobody sets them.
revoke update on record.state_versions, record.workspaces, record.objects, record.configuration_versions,
    record.input_snapshots from stackship_api;
-- An object changes only when its key is wrapped anew; a configuration only when it arrives.
grant update (wrapped_key, key_id) on record.objects to stackship_api;
grant update (object_id, sha256, bytes, uploaded_at) on record.configuration_versions to stackship_api;
grant update (object_id, json_object_id, outputs_object_id, sha256, bytes, status, staged_at)
    on record.state_versions to stackship_api;
grant update (name, tofu_version, working_directory, region, approval_seconds, updated_at)
    on record.workspaces to stackship_api;
grant select on record.workspaces, record.organizations, record.projects, record.users to stackship_projector;
