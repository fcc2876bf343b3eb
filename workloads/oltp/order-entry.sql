-- A wholesaler's warehouses, districts, customers, stocks and orders, after the business model of TPC-C, and its five transactions as
-- functions of the server. Not TPC-C compliant: no think times, no terminals, no rules of scaling, smaller tables.

CREATE TABLE items (item int, name text, price numeric(6,2));
CREATE TABLE warehouses (warehouse int, name text, tax numeric(4,4), taken numeric(14,2)) WITH (fillfactor = 50);
CREATE TABLE districts (warehouse int, district int, name text, tax numeric(4,4), taken numeric(14,2), next_order int) WITH (fillfactor = 50);
CREATE TABLE customers (
    warehouse int, district int, customer int, first text, last text, address text, discount numeric(4,4), credit text,
    balance numeric(14,2), paid numeric(14,2), payments int, deliveries int, data text
) WITH (fillfactor = 80);
CREATE TABLE payments (warehouse int, district int, customer int, amount numeric(8,2), at timestamptz);
CREATE TABLE orders (warehouse int, district int, order_id int, customer int, entered timestamptz, carrier int, lines int) WITH (fillfactor = 80);
CREATE TABLE new_orders (warehouse int, district int, order_id int);
CREATE TABLE order_lines (
    warehouse int, district int, order_id int, line int, item int, supplier int, quantity int, amount numeric(8,2), delivered timestamptz
) WITH (fillfactor = 80);
CREATE TABLE stocks (warehouse int, item int, quantity int, sold numeric(12), orders int, remote int, info text, data text) WITH (fillfactor = 80);

INSERT INTO items SELECT i, 'item ' || md5(i::text), (100 + i % 9900) / 100.0 FROM generate_series(1, 20000) i;

-- 20,000 stocks, 10 districts of 1,000 customers, and an order of each, of which the last 300 are not delivered.
CREATE FUNCTION load_warehouse(w int) RETURNS void LANGUAGE sql AS $$
    INSERT INTO warehouses VALUES (w, 'warehouse ' || w, 0.1, 0);
    INSERT INTO districts SELECT w, d, 'district ' || d, 0.05, 0, 1001 FROM generate_series(1, 10) d;
    INSERT INTO customers
        SELECT w, d, c, 'first ' || c, 'last ' || c % 1000, repeat(md5(c::text), 2), (c % 50) / 1000.0,
               CASE WHEN c % 10 = 0 THEN 'BC' ELSE 'GC' END, 0, 0, 0, 0, repeat(md5((c * d)::text), 9)
        FROM generate_series(1, 10) d, generate_series(1, 1000) c;
    INSERT INTO stocks
        SELECT w, i, 10 + i % 91, 0, 0, 0, repeat(md5(i::text), 8), md5((i * w)::text) FROM generate_series(1, 20000) i;
    -- 7919 has no factor in common with 1000: every customer has one order.
    INSERT INTO orders
        SELECT w, d, o, 1 + o * 7919 % 1000, now(), CASE WHEN o <= 700 THEN 1 + o % 10 END, 5 + o % 11
        FROM generate_series(1, 10) d, generate_series(1, 1000) o;
    INSERT INTO new_orders SELECT w, d, o FROM generate_series(1, 10) d, generate_series(701, 1000) o;
    INSERT INTO order_lines
        SELECT w, d, o, l, 1 + (o * 131 + l * 977 + d) % 20000, w, 5, CASE WHEN o <= 700 THEN 0 ELSE (o * l) % 9999 / 100.0 END,
               CASE WHEN o <= 700 THEN now() END
        FROM generate_series(1, 10) d, generate_series(1, 1000) o, generate_series(1, 5 + o % 11) l;
$$;

-- The next number between two, by a generator that the transaction's seed sets: a load is the same in all arms.
CREATE FUNCTION any_of(lowest int, highest int) RETURNS int LANGUAGE sql VOLATILE AS $$
    SELECT lowest + floor(random() * (highest - lowest + 1))::int
$$;

CREATE FUNCTION begin_with(seed bigint) RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT setseed(seed / 1000000000.0)
$$;

-- An order of 5 to 15 lines; one in a hundred names an item that is not there, and is given up. Gives its total.
CREATE FUNCTION new_order(w int, seed bigint) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    d int; c int; o int; count int; total numeric := 0; rate numeric; part record; wanted int[] := '{}'; in_stock int; info_text text; line int := 0;
BEGIN
    PERFORM begin_with(seed);
    d := any_of(1, 10); c := any_of(1, 1000); count := any_of(5, 15);
    IF any_of(1, 100) = 1 THEN RETURN NULL; END IF;
    WHILE cardinality(wanted) < count LOOP wanted := wanted || any_of(1, 20000); END LOOP;
    SELECT (1 - customers.discount) * (1 + warehouses.tax) INTO rate FROM customers, warehouses
        WHERE warehouses.warehouse = w AND customers.warehouse = w AND district = d AND customer = c;
    UPDATE districts SET next_order = next_order + 1 WHERE warehouse = w AND district = d RETURNING next_order - 1 INTO o;
    INSERT INTO orders VALUES (w, d, o, c, now(), NULL, count);
    INSERT INTO new_orders VALUES (w, d, o);
    -- In the order of items: two orders never wait for each other.
    FOR part IN SELECT items.item, price FROM unnest(wanted) AS asked(item) JOIN items USING (item) ORDER BY items.item LOOP
        line := line + 1;
        UPDATE stocks SET quantity = CASE WHEN quantity >= 15 THEN quantity - 5 ELSE quantity + 86 END, sold = sold + 5, orders = orders + 1
            WHERE warehouse = w AND item = part.item RETURNING quantity, info INTO in_stock, info_text;
        INSERT INTO order_lines VALUES (w, d, o, line, part.item, w, 5, 5 * part.price, NULL);
        total := total + 5 * part.price;
    END LOOP;
    RETURN round(total * rate, 2);
END $$;

-- A customer pays; of those with bad credit a note is kept. Gives what is still owed.
CREATE FUNCTION payment(w int, seed bigint) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    d int; c int; amount numeric; owed numeric;
BEGIN
    PERFORM begin_with(seed);
    d := any_of(1, 10); c := any_of(1, 1000); amount := any_of(100, 500000) / 100.0;
    UPDATE warehouses SET taken = taken + amount WHERE warehouse = w;
    UPDATE districts SET taken = taken + amount WHERE warehouse = w AND district = d;
    UPDATE customers SET balance = balance - amount, paid = paid + amount, payments = payments + 1,
            data = CASE WHEN credit = 'BC' THEN left(c || ' ' || d || ' ' || amount || ' ' || data, 300) ELSE data END
        WHERE warehouse = w AND district = d AND customer = c RETURNING balance INTO owed;
    INSERT INTO payments VALUES (w, d, c, amount, now());
    RETURN owed;
END $$;

-- The lines of a customer's last order. Reads only.
CREATE FUNCTION order_status(w int, seed bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    d int; c int; o int; shown bigint;
BEGIN
    PERFORM begin_with(seed);
    d := any_of(1, 10); c := any_of(1, 1000);
    SELECT max(order_id) INTO o FROM orders WHERE warehouse = w AND district = d AND customer = c;
    SELECT count(*) INTO shown FROM order_lines WHERE warehouse = w AND district = d AND order_id = o AND amount >= 0;
    RETURN shown;
END $$;

-- The oldest order of each district is delivered and charged. Gives how many were.
CREATE FUNCTION delivery(w int, seed bigint) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    o int; c int; sum_of numeric; done int := 0; by_carrier int;
BEGIN
    PERFORM begin_with(seed);
    by_carrier := any_of(1, 10);
    FOR d IN 1..10 LOOP
        DELETE FROM new_orders WHERE warehouse = w AND district = d AND order_id = (
            SELECT order_id FROM new_orders WHERE warehouse = w AND district = d ORDER BY order_id LIMIT 1 FOR UPDATE
        ) RETURNING order_id INTO o;
        CONTINUE WHEN o IS NULL;
        UPDATE orders SET carrier = by_carrier WHERE warehouse = w AND district = d AND order_id = o RETURNING customer INTO c;
        UPDATE order_lines SET delivered = now() WHERE warehouse = w AND district = d AND order_id = o;
        SELECT sum(amount) INTO sum_of FROM order_lines WHERE warehouse = w AND district = d AND order_id = o;
        UPDATE customers SET balance = balance + sum_of, deliveries = deliveries + 1 WHERE warehouse = w AND district = d AND customer = c;
        done := done + 1;
    END LOOP;
    RETURN done;
END $$;

-- How many items of a district's last 20 orders are low in stock. Reads only.
CREATE FUNCTION stock_level(w int, seed bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    d int; low int; found bigint;
BEGIN
    PERFORM begin_with(seed);
    d := any_of(1, 10); low := any_of(10, 20);
    SELECT count(DISTINCT stocks.item) INTO found FROM districts
        JOIN order_lines ON order_lines.warehouse = w AND order_lines.district = d
            AND order_lines.order_id >= next_order - 20 AND order_lines.order_id < next_order
        JOIN stocks ON stocks.warehouse = w AND stocks.item = order_lines.item
        WHERE districts.warehouse = w AND districts.district = d AND stocks.quantity < low;
    RETURN found;
END $$;
