\set warehouse random(1, :warehouses)
\set seed random(1, 1000000000)
SELECT new_order(:warehouse, :seed);
