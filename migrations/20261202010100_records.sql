-- Records: what people set up, and what runs leave behind that is not an event.

create table record.organizations (
    organization_id text primary key,
    name text not null unique check (name ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,89}$'),
    created_at timestamptz not null default clock_timestamp()
);

create table record.users (
    user_id text primary key,
    login text not null unique check (length(login) between 1 and 200),
    display_name text not null check (length(display_name) between 1 and 200),
    kind text not null default 'person' check (kind in ('person', 'service')),
    password_hash text,
    created_at timestamptz not null default clock_timestamp(),
    disabled_at timestamptz
);

create table record.projects (
    project_id text primary key,
    organization_id text not null references record.organizations,
    name text not null check (name ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,89}$'),
    created_at timestamptz not null default clock_timestamp(),
    constraint project_name_taken unique (organization_id, name),
    unique (organization_id, project_id)
);

create table record.workspaces (
    workspace_id text primary key,
    organization_id text not null,
    project_id text not null,
    name text not null check (name ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,89}$'),
    tofu_version text not null check (tofu_version ~ '^[0-9]+\.[0-9]+\.[0-9]+$'),
    working_directory text not null default '' check (length(working_directory) <= 512),
    region text not null check (length(region) between 1 and 64),
    platform text not null default 'linux_amd64' check (platform in ('linux_amd64', 'linux_arm64')),
    approval_seconds integer not null default 86400 check (approval_seconds between 60 and 2592000),
    auto_apply boolean not null default false constraint auto_apply_never check (not auto_apply),
    current_state_version_id text,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    foreign key (organization_id, project_id) references record.projects (organization_id, project_id),
    constraint workspace_name_taken unique (organization_id, name),
    unique (organization_id, workspace_id)
);
create index workspaces_by_project on record.workspaces (project_id);

create table record.variables (
    variable_id text primary key,
    organization_id text not null,
    workspace_id text not null,
    key text not null check (length(key) between 1 and 128),
    category text not null check (category in ('terraform', 'env')),
    hcl boolean not null,
    sensitive boolean not null,
    description text not null default '' check (length(description) <= 1000),
    -- A sensitive value is sealed under the key-encryption key; a plain one is readable.
    value text,
    sealed_value bytea,
    sealed_key_id text,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    foreign key (organization_id, workspace_id) references record.workspaces (organization_id, workspace_id),
    constraint variable_key_taken unique (workspace_id, category, key),
    check (sensitive = (sealed_value is not null)),
    check (sensitive = (value is null)),
    check ((sealed_value is null) = (sealed_key_id is null))
);

create table record.role_grants (
    grant_id bigint generated always as identity primary key,
    organization_id text not null references record.organizations,
    project_id text references record.projects,
    workspace_id text references record.workspaces,
    user_id text not null references record.users,
    role text not null check (role in ('reader', 'planner', 'operator', 'owner')),
    created_at timestamptz not null default clock_timestamp(),
    check (project_id is null or workspace_id is null)
);
create unique index grant_once on record.role_grants
    (organization_id, user_id, coalesce(project_id, ''), coalesce(workspace_id, ''));
create index grants_by_user on record.role_grants (user_id, organization_id);

create table record.tokens (
    token_id text primary key,
    user_id text not null references record.users,
    -- A token opens one organization only.
    organization_id text not null references record.organizations,
    secret_sha256 bytea not null unique check (length(secret_sha256) = 32),
    description text not null check (length(description) between 1 and 200),
    created_at timestamptz not null default clock_timestamp(),
    created_by text not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz
);
create index tokens_by_user on record.tokens (organization_id, user_id);

create table record.objects (
    object_id text primary key,
    organization_id text not null references record.organizations,
    workspace_id text,
    kind text not null check (length(kind) between 1 and 40),
    storage_key text not null unique,
    bytes bigint not null check (bytes >= 0),
    sha256 bytea not null check (length(sha256) = 32),
    wrapped_key bytea not null,
    key_id text not null,
    created_at timestamptz not null default clock_timestamp(),
    foreign key (organization_id, workspace_id) references record.workspaces (organization_id, workspace_id)
);

create table record.configuration_versions (
    configuration_version_id text primary key,
    organization_id text not null,
    workspace_id text not null,
    speculative boolean not null,
    source text not null check (source in ('api', 'cli', 'github')),
    object_id text references record.objects,
    sha256 bytea check (length(sha256) = 32),
    bytes bigint,
    created_by text not null,
    created_at timestamptz not null default clock_timestamp(),
    uploaded_at timestamptz,
    foreign key (organization_id, workspace_id) references record.workspaces (organization_id, workspace_id),
    check ((object_id is null) = (uploaded_at is null)),
    check ((object_id is null) = (sha256 is null))
);

create table record.input_snapshots (
    input_snapshot_id text primary key,
    organization_id text not null,
    workspace_id text not null,
    object_id text not null references record.objects,
    sha256 bytea not null check (length(sha256) = 32),
    created_at timestamptz not null default clock_timestamp(),
    foreign key (organization_id, workspace_id) references record.workspaces (organization_id, workspace_id)
);

-- One row a run, written by the log's own trigger from the first event and by nothing else.
create table record.runs (
    run_id text primary key,
    organization_id text not null,
    project_id text not null,
    workspace_id text not null,
    kind text not null check (kind in ('plan_and_apply', 'speculative')),
    configuration_version_id text not null references record.configuration_versions,
    input_snapshot_id text not null references record.input_snapshots,
    configuration_digest text not null check (configuration_digest ~ '^[0-9a-f]{64}$'),
    inputs_digest text not null check (inputs_digest ~ '^[0-9a-f]{64}$'),
    tofu_version text not null check (tofu_version ~ '^[0-9]+\.[0-9]+\.[0-9]+$'),
    region text not null,
    platform text not null,
    auto_apply boolean not null constraint auto_apply_never check (not auto_apply),
    fence bigint,
    created_at timestamptz not null,
    ended_at timestamptz,
    foreign key (organization_id, workspace_id) references record.workspaces (organization_id, workspace_id),
    unique (organization_id, run_id),
    constraint fence_only_for_apply check (fence is null or kind = 'plan_and_apply')
);
create unique index run_of_configuration on record.runs (configuration_version_id);
create index runs_unfinished on record.runs (run_id) where ended_at is null;

create function record.guard_run() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        raise exception 'a run is never deleted' using errcode = 'SS003';
    end if;
    if old.fence is not null and new.fence is distinct from old.fence then
        raise exception 'the fence of run % is fixed', old.run_id using errcode = 'SS003';
    end if;
    if old.ended_at is not null and new.ended_at is distinct from old.ended_at then
        raise exception 'run % has ended', old.run_id using errcode = 'SS003';
    end if;
    if to_jsonb(new) - 'fence' - 'ended_at' <> to_jsonb(old) - 'fence' - 'ended_at' then
        raise exception 'what run % pins cannot change', old.run_id using errcode = 'SS003';
    end if;
    return new;
end
$$;
create trigger runs_pinned before update or delete on record.runs
    for each row execute function record.guard_run();

-- The row that a late write is checked against. It follows the workspace's events by trigger.
create table record.workspace_locks (
    workspace_id text primary key references record.workspaces,
    fence bigint not null check (fence > 0),
    run_id text references record.runs,
    user_id text references record.users,
    reason text,
    since timestamptz not null default clock_timestamp(),
    constraint one_holder check (run_id is null or user_id is null)
);

create table record.runners (
    runner_id text primary key,
    name text not null unique check (length(name) between 1 and 100),
    secret_sha256 bytea not null unique check (length(secret_sha256) = 32),
    created_at timestamptz not null default clock_timestamp(),
    last_seen_at timestamptz,
    revoked_at timestamptz
);

-- One numbered try at a phase: offered, leased, closed.
create table record.attempts (
    attempt_id text primary key,
    organization_id text not null,
    workspace_id text not null,
    run_id text not null references record.runs,
    phase text not null check (phase in ('plan', 'apply')),
    number integer not null check (number between 1 and 100),
    region text not null,
    platform text not null,
    fence bigint,
    binding text check (binding ~ '^[0-9a-f]{64}$'),
    predecessor jsonb not null,
    offered_at timestamptz not null default clock_timestamp(),
    runner_id text references record.runners,
    leased_at timestamptz,
    lease_expires_at timestamptz,
    lease_token_sha256 bytea unique,
    run_token_sha256 bytea unique,
    tofu_started_at timestamptz,
    cancel_requested_at timestamptz,
    result jsonb check (pg_column_size(result) <= 262144),
    result_at timestamptz,
    closed_at timestamptz,
    close_cause text check (close_cause in ('result', 'lease_expired', 'handed_back', 'withdrawn')),
    constraint attempt_number_taken unique (run_id, phase, number),
    constraint apply_is_bound check (phase = 'plan' or (fence is not null and binding is not null)),
    constraint leased_whole check (
        (runner_id is null) = (leased_at is null)
        and (runner_id is null) = (lease_expires_at is null)
        and (runner_id is null) = (lease_token_sha256 is null)
    ),
    check ((result is null) = (result_at is null)),
    check ((closed_at is null) = (close_cause is null))
);
-- Applies come before plans: a person waits for them and they hold a lock. A runner looks below its
-- own region and platform alone: offers that pile up where no runner is are not in its way.
create index attempts_offered on record.attempts
    (region, platform, (case phase when 'apply' then 0 else 1 end), offered_at)
    where runner_id is null and closed_at is null;
create index attempts_leased on record.attempts (lease_expires_at) where runner_id is not null and closed_at is null;
-- At most one live apply a workspace (an attempt is live from its lease to its close).
create unique index one_live_apply on record.attempts (workspace_id)
    where phase = 'apply' and closed_at is null;

create table record.state_versions (
    state_version_id text primary key,
    organization_id text not null,
    workspace_id text not null,
    run_id text not null references record.runs,
    fence bigint not null,
    serial bigint not null check (serial >= 0),
    lineage text not null check (length(lineage) between 1 and 128),
    md5 text not null check (md5 ~ '^[0-9a-f]{32}$'),
    status text not null default 'pending' check (status in ('pending', 'staged', 'published')),
    object_id text references record.objects,
    json_object_id text references record.objects,
    outputs_object_id text references record.objects,
    sha256 bytea check (length(sha256) = 32),
    bytes bigint,
    created_at timestamptz not null default clock_timestamp(),
    staged_at timestamptz,
    published_at timestamptz,
    foreign key (organization_id, workspace_id) references record.workspaces (organization_id, workspace_id),
    constraint same_upload_once unique (run_id, serial, lineage, md5),
    check ((status = 'pending') = (object_id is null)),
    check ((status = 'published') = (published_at is not null))
);
create unique index published_serial_once on record.state_versions (workspace_id, serial, lineage) where status = 'published';
create index state_versions_by_run on record.state_versions (run_id, serial desc);
alter table record.workspaces add foreign key (current_state_version_id) references record.state_versions;

-- The log of a phase: chunks in order, each at a known offset.
create table record.phase_logs (
    run_id text not null references record.runs,
    phase text not null check (phase in ('plan', 'policy', 'apply')),
    bytes bigint not null default 0 check (bytes >= 0),
    attempt_number integer not null default 0,
    next_sequence bigint not null default 0,
    truncated boolean not null default false,
    closed_at timestamptz,
    primary key (run_id, phase)
);
create table record.log_chunks (
    run_id text not null,
    phase text not null,
    start_offset bigint not null check (start_offset >= 0),
    body bytea not null check (length(body) between 1 and 262144),
    primary key (run_id, phase, start_offset),
    foreign key (run_id, phase) references record.phase_logs
);
