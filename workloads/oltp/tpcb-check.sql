-- Each transaction adds one amount to an account, a teller and a branch, and notes it.
SELECT 'balances and history disagree'
WHERE (SELECT sum(abalance) FROM pgbench_accounts) IS DISTINCT FROM (SELECT sum(bbalance) FROM pgbench_branches)
   OR (SELECT sum(tbalance) FROM pgbench_tellers) IS DISTINCT FROM (SELECT sum(bbalance) FROM pgbench_branches)
   OR coalesce((SELECT sum(delta) FROM pgbench_history), 0) <> (SELECT sum(bbalance) FROM pgbench_branches);
