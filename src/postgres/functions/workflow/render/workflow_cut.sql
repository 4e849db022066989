-- Whether this is the note that stands for a result that was too large to be stored. The blank tells: a handler's own
-- result is never written with a blank there, whatever is in it (src/core/storable.ts), and json keeps its text.
create or replace function sluice.workflow_cut(p_outcome json) returns boolean language sql immutable as $$
  select p_outcome::text like '{ "truncated":true,"bytes":%'
$$;
