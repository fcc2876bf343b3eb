-- What must hold after any number of transactions; a line for each that does not. After the consistency conditions of TPC-C's public
-- description.
SELECT 'a warehouse has taken other than its districts: ' || warehouse
FROM warehouses JOIN (SELECT warehouse, sum(taken) AS parts FROM districts GROUP BY warehouse) d USING (warehouse) WHERE taken <> parts
UNION ALL
SELECT 'a warehouse has taken other than its payments: ' || warehouse
FROM warehouses LEFT JOIN (SELECT warehouse, sum(amount) AS parts FROM payments GROUP BY warehouse) p USING (warehouse)
WHERE taken <> coalesce(parts, 0)
UNION ALL
SELECT 'a district has taken other than its payments: ' || warehouse || '/' || district
FROM districts LEFT JOIN (SELECT warehouse, district, sum(amount) AS parts FROM payments GROUP BY 1, 2) p USING (warehouse, district)
WHERE taken <> coalesce(parts, 0)
UNION ALL
SELECT 'the next order does not follow the last: ' || warehouse || '/' || district
FROM districts JOIN (SELECT warehouse, district, max(order_id) AS last, count(*) AS number FROM orders GROUP BY 1, 2) o
    USING (warehouse, district)
WHERE next_order - 1 <> last OR last <> number
UNION ALL
SELECT 'new orders have gaps: ' || warehouse || '/' || district
FROM new_orders GROUP BY warehouse, district HAVING max(order_id) - min(order_id) + 1 <> count(*)
UNION ALL
SELECT 'orders and their lines disagree: ' || warehouse || '/' || district
FROM (SELECT warehouse, district, sum(lines) AS number FROM orders GROUP BY 1, 2) o
    JOIN (SELECT warehouse, district, count(*) AS found FROM order_lines GROUP BY 1, 2) l USING (warehouse, district)
WHERE number <> found
UNION ALL
SELECT 'an order is new and delivered, or neither: ' || orders.warehouse || '/' || orders.district || '/' || orders.order_id
FROM orders LEFT JOIN new_orders USING (warehouse, district, order_id)
WHERE (carrier IS NULL) <> (new_orders.order_id IS NOT NULL)
UNION ALL
SELECT 'a line is delivered and its order is not, or the other way: ' || warehouse || '/' || district || '/' || order_id
FROM orders JOIN order_lines USING (warehouse, district, order_id) WHERE (carrier IS NULL) <> (delivered IS NULL)
UNION ALL
SELECT 'a customer owes other than was delivered and paid: ' || warehouse || '/' || district || '/' || customer
FROM customers LEFT JOIN (
    SELECT warehouse, district, customer, sum(amount) AS due FROM orders JOIN order_lines USING (warehouse, district, order_id)
    WHERE delivered IS NOT NULL GROUP BY 1, 2, 3
) o USING (warehouse, district, customer)
WHERE balance <> coalesce(due, 0) - paid;
