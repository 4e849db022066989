-- Returns the id of a lane: its level in the highest bits, then 60 bits of a keyed hash of its name. The hash is md5
-- with the secret in front, so that nobody without access to the database can search for collisions.
create or replace function sluice.lane_id(p_level int, p_name text, p_secret text) returns bigint
language sql immutable parallel safe as $$
  select (p_level::bigint << 60)
    | ('x' || substr(md5(/* guard:secret */ p_secret || /* end */ p_name), 1, 15))::bit(60)::bigint
$$;
