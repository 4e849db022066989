create or replace view sluice.violation as select * from sluice.violations();
