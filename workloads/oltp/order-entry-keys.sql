-- After the rows, which is quicker.
ALTER TABLE items ADD PRIMARY KEY (item);
ALTER TABLE warehouses ADD PRIMARY KEY (warehouse);
ALTER TABLE districts ADD PRIMARY KEY (warehouse, district);
ALTER TABLE customers ADD PRIMARY KEY (warehouse, district, customer);
ALTER TABLE orders ADD PRIMARY KEY (warehouse, district, order_id);
ALTER TABLE new_orders ADD PRIMARY KEY (warehouse, district, order_id);
ALTER TABLE order_lines ADD PRIMARY KEY (warehouse, district, order_id, line);
ALTER TABLE stocks ADD PRIMARY KEY (warehouse, item);
CREATE INDEX ON orders (warehouse, district, customer, order_id);
VACUUM ANALYZE;
