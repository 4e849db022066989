-- A random lane id among those of keys of limits.
create or replace function sluice.random_key() returns bigint language sql volatile as $$
  select sluice.first_key() | (random() * ((1::bigint << 60) - 1))::bigint
$$;
