-- What must never be, as a view (see violations).
create or replace view sluice.violation as select * from sluice.violations();
