-- For which region and platform each runner last asked for work, so that a run which no runner will take
-- says so and does not wait in silence.
create table record.runner_places (
    runner_id text not null references record.runners,
    region text not null check (length(region) between 1 and 64),
    platform text not null check (length(platform) between 1 and 64),
    asked_at timestamptz not null default clock_timestamp(),
    primary key (runner_id, region, platform)
);
create index runner_places_by_place on record.runner_places (region, platform, asked_at);
grant select, insert, update on record.runner_places to stackship_api;
