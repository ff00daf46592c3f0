-- Policy sets: a name, numbered versions that never change, and the places where the newest version
-- applies. What a run was judged by stays readable for ever, so nothing here is deleted but an
-- attachment, and the log tells of that.

create table record.policy_sets (
    policy_set_id text primary key,
    organization_id text not null references record.organizations,
    name text not null check (name ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,89}$'),
    created_by text not null,
    created_at timestamptz not null default clock_timestamp(),
    -- An archived set applies nowhere, takes no version, and gives its name back.
    archived_at timestamptz,
    unique (organization_id, policy_set_id)
);
create unique index policy_set_name_taken on record.policy_sets (organization_id, name)
    where archived_at is null;

create table record.policy_set_versions (
    organization_id text not null,
    policy_set_id text not null,
    number integer not null check (number between 1 and 10000),
    -- What a run pins: the digest of the bundle, which is not the one of the stored bytes.
    bundle bytea not null check (length(bundle) = 32),
    -- The author's own name for this state.
    label text not null check (length(label) between 1 and 64),
    policies integer not null check (policies between 1 and 1000),
    object_id text not null unique references record.objects,
    uploaded_by text not null,
    uploaded_at timestamptz not null default clock_timestamp(),
    primary key (policy_set_id, number),
    foreign key (organization_id, policy_set_id) references record.policy_sets (organization_id, policy_set_id)
);
create index policy_set_versions_by_bundle on record.policy_set_versions (organization_id, bundle);

-- Neither a project nor a workspace: the whole organization.
create table record.policy_attachments (
    attachment_id bigint generated always as identity primary key,
    organization_id text not null,
    policy_set_id text not null,
    project_id text,
    workspace_id text,
    attached_by text not null,
    attached_at timestamptz not null default clock_timestamp(),
    foreign key (organization_id, policy_set_id) references record.policy_sets (organization_id, policy_set_id),
    foreign key (organization_id, project_id) references record.projects (organization_id, project_id),
    foreign key (organization_id, workspace_id) references record.workspaces (organization_id, workspace_id),
    check (project_id is null or workspace_id is null)
);
create unique index policy_attached_once on record.policy_attachments
    (policy_set_id, coalesce(project_id, ''), coalesce(workspace_id, ''));
create index policy_attachments_by_place on record.policy_attachments (organization_id, project_id, workspace_id);

create function record.keep_policies() returns trigger language plpgsql as $$
begin
    raise exception 'what policies said stays: % on % refused', tg_op, tg_table_name using errcode = 'SS003';
end
$$;
create trigger policy_set_versions_kept before update or delete on record.policy_set_versions
    for each row execute function record.keep_policies();
create trigger policy_set_versions_no_truncate before truncate on record.policy_set_versions
    for each statement execute function record.keep_policies();
create trigger policy_sets_kept before delete on record.policy_sets
    for each row execute function record.keep_policies();
create trigger policy_attachments_kept before update on record.policy_attachments
    for each row execute function record.keep_policies();

-- A set changes once: when it is archived, and then it applies nowhere.
create function record.guard_policy_set() returns trigger language plpgsql as $$
begin
    if to_jsonb(new) - 'archived_at' <> to_jsonb(old) - 'archived_at' or old.archived_at is not null then
        raise exception 'policy set % cannot change', old.policy_set_id using errcode = 'SS003';
    end if;
    if exists (select from record.policy_attachments where policy_set_id = old.policy_set_id) then
        raise exception 'policy set % is attached', old.policy_set_id using errcode = 'SS004';
    end if;
    return new;
end
$$;
create trigger policy_sets_guarded before update on record.policy_sets
    for each row execute function record.guard_policy_set();

-- Holding the set's row makes a concurrent archiving wait, and then see what was written here.
create function record.require_policy_set(the_set text) returns void language plpgsql as $$
begin
    perform from record.policy_sets where policy_set_id = the_set and archived_at is null for share;
    if not found then
        raise exception 'policy set % is archived', the_set using errcode = 'SS004';
    end if;
end
$$;

create function record.guard_policy_set_version() returns trigger language plpgsql as $$
begin
    perform record.require_policy_set(new.policy_set_id);
    if not exists (select from record.objects where object_id = new.object_id
            and organization_id = new.organization_id and kind = 'policy_bundle') then
        raise exception 'there is no such bundle in this organization' using errcode = 'SS004';
    end if;
    return new;
end
$$;
create trigger policy_set_versions_guarded before insert on record.policy_set_versions
    for each row execute function record.guard_policy_set_version();

-- A set without a version would be a guard that is not there.
create function record.guard_policy_attachment() returns trigger language plpgsql as $$
begin
    perform record.require_policy_set(new.policy_set_id);
    if not exists (select from record.policy_set_versions where policy_set_id = new.policy_set_id) then
        raise exception 'policy set % has no version', new.policy_set_id using errcode = 'SS004';
    end if;
    return new;
end
$$;
create trigger policy_attachments_guarded before insert on record.policy_attachments
    for each row execute function record.guard_policy_attachment();

grant select, insert, update (archived_at) on record.policy_sets to stackship_api;
grant select, insert on record.policy_set_versions to stackship_api;
grant select, insert, delete on record.policy_attachments to stackship_api;
