\set warehouse random(1, :warehouses)
\set seed random(1, 1000000000)
SELECT stock_level(:warehouse, :seed);
