// A wholesaler's business, all in memory: one thread for each warehouse takes orders, payments and deliveries in a fixed mix.
//
// After the public description of the business model of SPECjbb2005 (a three-tier system after TPC-C, objects in place of tables).
// It shares no code with that benchmark, and its numbers cannot be compared with numbers of it.

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLongArray;

import com.sun.management.OperatingSystemMXBean;

public final class Jbb {
    static final int STOCKS = 20_000, DISTRICTS = 10, CUSTOMERS = 900, ORDERS_KEPT = 900, ITEMS = 20_000;

    enum Operation {
        NEW_ORDER(10), PAYMENT(10), ORDER_STATUS(1), DELIVERY(1), STOCK_LEVEL(1), CUSTOMER_REPORT(10);

        final int share;

        Operation(int share) {
            this.share = share;
        }
    }

    /** So many operations of each kind in one round, as its share is. */
    static final Operation[] ROUND = round();

    static Operation[] round() {
        List<Operation> all = new ArrayList<>();
        for (Operation operation : Operation.values()) {
            for (int i = 0; i < operation.share; i++) {
                all.add(operation);
            }
        }
        return all.toArray(new Operation[0]);
    }

    static final class Item {
        final String name;
        final BigDecimal price;

        Item(SplittableRandom random) {
            name = word(random, 14, 24);
            price = money(random.nextInt(100, 10_000));
        }
    }

    static final class Stock {
        final String[] districts = new String[DISTRICTS];
        final String data;
        int quantity, ordered;
        BigDecimal sold = BigDecimal.ZERO;

        Stock(SplittableRandom random) {
            for (int i = 0; i < DISTRICTS; i++) {
                districts[i] = word(random, 24, 24);
            }
            data = word(random, 26, 50);
            quantity = random.nextInt(10, 101);
        }
    }

    static final class Customer {
        final String first, last, street, city, phone, data;
        final BigDecimal discount;
        BigDecimal balance = money(-1000), paid = money(1000);
        int payments, deliveries;
        Order latest;

        Customer(SplittableRandom random, int number) {
            first = word(random, 8, 16);
            last = "CUSTOMER" + number % 1000;
            street = word(random, 10, 20);
            city = word(random, 10, 20);
            phone = word(random, 16, 16);
            data = word(random, 200, 300);
            discount = BigDecimal.valueOf(random.nextInt(0, 51), 3);
        }
    }

    static final class Line {
        final int item, quantity;
        final BigDecimal amount;
        long delivered;

        Line(int item, int quantity, BigDecimal amount) {
            this.item = item;
            this.quantity = quantity;
            this.amount = amount;
        }
    }

    static final class Order {
        final long id;
        final Customer customer;
        final List<Line> lines;
        final long entered = System.nanoTime();
        int carrier;

        Order(long id, Customer customer, List<Line> lines) {
            this.id = id;
            this.customer = customer;
            this.lines = lines;
        }

        BigDecimal total() {
            BigDecimal sum = BigDecimal.ZERO;
            for (Line line : lines) {
                sum = sum.add(line.amount);
            }
            return sum;
        }
    }

    static final class District {
        final BigDecimal tax;
        final Map<Integer, Customer> customers = new HashMap<>();
        final TreeMap<Long, Order> orders = new TreeMap<>();
        final ArrayDeque<Order> undelivered = new ArrayDeque<>();
        BigDecimal taken = BigDecimal.ZERO;
        long next;

        District(SplittableRandom random) {
            tax = BigDecimal.valueOf(random.nextInt(0, 201), 3);
            for (int i = 0; i < CUSTOMERS; i++) {
                customers.put(i, new Customer(random, i));
            }
        }

        void keep(Order order) {
            orders.put(order.id, order);
            undelivered.add(order);
            order.customer.latest = order;
            if (orders.size() > ORDERS_KEPT) {
                orders.pollFirstEntry();
            }
        }
    }

    /** A warehouse and the thread that works in it. */
    static final class Warehouse implements Runnable {
        final SplittableRandom random;
        final Item[] items;
        final Map<Integer, Stock> stocks = new HashMap<>();
        final District[] districts = new District[DISTRICTS];
        final AtomicLongArray histogram;
        final StringBuilder screen = new StringBuilder(4096);
        volatile long done;
        long characters;

        Warehouse(int number, Item[] items, AtomicLongArray histogram) {
            random = new SplittableRandom(4711 + number);
            this.items = items;
            this.histogram = histogram;
            for (int i = 0; i < STOCKS; i++) {
                stocks.put(i, new Stock(random));
            }
            for (int i = 0; i < DISTRICTS; i++) {
                districts[i] = new District(random);
                for (int order = 0; order < ORDERS_KEPT; order++) {
                    enter(districts[i]);
                }
            }
        }

        @Override
        public void run() {
            Operation[] round = ROUND.clone();
            while (!stopped) {
                for (int i = round.length - 1; i > 0; i--) {
                    int other = random.nextInt(i + 1);
                    Operation swapped = round[i];
                    round[i] = round[other];
                    round[other] = swapped;
                }
                for (Operation operation : round) {
                    long began = System.nanoTime();
                    carryOut(operation);
                    long took = System.nanoTime() - began;
                    if (counting) {
                        histogram.incrementAndGet(64 - Long.numberOfLeadingZeros(took));
                    }
                    done++; // only this thread writes it
                    if (stopped) {
                        return;
                    }
                }
            }
        }

        void carryOut(Operation operation) {
            District district = districts[random.nextInt(DISTRICTS)];
            screen.setLength(0);
            switch (operation) {
                case NEW_ORDER -> show(enter(district), district);
                case PAYMENT -> pay(district);
                case ORDER_STATUS -> show(district.customers.get(random.nextInt(CUSTOMERS)).latest, district);
                case DELIVERY -> deliver();
                case STOCK_LEVEL -> level(district);
                case CUSTOMER_REPORT -> report(district);
            }
            characters += screen.toString().hashCode();
        }

        Order enter(District district) {
            Customer customer = district.customers.get(random.nextInt(CUSTOMERS));
            int count = random.nextInt(5, 16);
            List<Line> lines = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                int item = random.nextInt(ITEMS), quantity = random.nextInt(1, 11);
                Stock stock = stocks.get(item);
                stock.quantity -= stock.quantity > quantity + 10 ? quantity : quantity - 91;
                stock.ordered++;
                BigDecimal amount = items[item].price.multiply(BigDecimal.valueOf(quantity));
                stock.sold = stock.sold.add(amount);
                lines.add(new Line(item, quantity, amount));
            }
            Order order = new Order(district.next++, customer, lines);
            district.keep(order);
            return order;
        }

        void pay(District district) {
            Customer customer = district.customers.get(random.nextInt(CUSTOMERS));
            BigDecimal amount = money(random.nextInt(100, 500_000));
            customer.balance = customer.balance.subtract(amount);
            customer.paid = customer.paid.add(amount);
            customer.payments++;
            district.taken = district.taken.add(amount);
            screen.append("PAYMENT ").append(customer.first).append(' ').append(customer.last).append('\n');
            screen.append(customer.street).append(", ").append(customer.city).append(' ').append(customer.phone).append('\n');
            screen.append("amount ").append(amount).append(" balance ").append(customer.balance).append('\n');
            screen.append(customer.data, 0, Math.min(200, customer.data.length())).append('\n');
        }

        void deliver() {
            int carrier = random.nextInt(1, 11);
            for (District district : districts) {
                Order order = district.undelivered.poll();
                if (order == null) {
                    continue;
                }
                order.carrier = carrier;
                long now = System.nanoTime();
                order.lines.forEach(line -> line.delivered = now);
                order.customer.balance = order.customer.balance.add(order.total());
                order.customer.deliveries++;
                screen.append("DELIVERED ").append(order.id).append(" by ").append(carrier).append('\n');
            }
            // Deliveries are rarer than orders: what waits too long is dropped, so that memory stays as it is.
            for (District district : districts) {
                while (district.undelivered.size() > ORDERS_KEPT) {
                    district.undelivered.poll();
                }
            }
        }

        void level(District district) {
            int low = 0, threshold = random.nextInt(10, 21), looked = 0;
            for (Order order : district.orders.descendingMap().values()) {
                for (Line line : order.lines) {
                    low += stocks.get(line.item).quantity < threshold ? 1 : 0;
                }
                if (++looked == 20) {
                    break;
                }
            }
            screen.append("STOCK LEVEL below ").append(threshold).append(": ").append(low).append('\n');
        }

        void report(District district) {
            Customer customer = district.customers.get(random.nextInt(CUSTOMERS));
            screen.append("REPORT ").append(customer.first).append(' ').append(customer.last).append('\n');
            screen.append("paid ").append(customer.paid).append(" in ").append(customer.payments).append(", owes ");
            screen.append(customer.balance.setScale(2, RoundingMode.HALF_EVEN)).append('\n');
            if (customer.latest != null) {
                show(customer.latest, district);
            }
        }

        void show(Order order, District district) {
            if (order == null) {
                screen.append("NO ORDER\n");
                return;
            }
            screen.append("ORDER ").append(order.id).append(' ').append(order.customer.last).append('\n');
            for (Line line : order.lines) {
                screen.append(items[line.item].name).append(' ').append(line.quantity).append(' ');
                screen.append(line.amount).append(line.delivered > 0 ? " sent" : " open").append('\n');
            }
            BigDecimal total = order.total().multiply(BigDecimal.ONE.subtract(order.customer.discount));
            total = total.multiply(BigDecimal.ONE.add(district.tax)).setScale(2, RoundingMode.HALF_EVEN);
            screen.append("total ").append(total).append('\n');
        }
    }

    static volatile boolean stopped, counting;

    static String word(SplittableRandom random, int least, int most) {
        int length = random.nextInt(least, most + 1);
        StringBuilder text = new StringBuilder(length);
        for (int i = 0; i < length; i++) {
            text.append((char) ('a' + random.nextInt(26)));
        }
        return text.toString();
    }

    static BigDecimal money(int cents) {
        return BigDecimal.valueOf(cents, 2);
    }

    static long total(Warehouse[] warehouses) {
        long sum = 0;
        for (Warehouse warehouse : warehouses) {
            sum += warehouse.done;
        }
        return sum;
    }

    /** The time that this share of the operations stayed below: the upper end of its power of two. */
    static double microseconds(AtomicLongArray histogram, double share) {
        long all = 0, below = 0;
        for (int i = 0; i < histogram.length(); i++) {
            all += histogram.get(i);
        }
        for (int i = 0; i < histogram.length(); i++) {
            below += histogram.get(i);
            if (below >= share * all) {
                return Math.scalb(1.0, i) / 1000;
            }
        }
        return 0;
    }

    /** CPU time so far in nanoseconds: of the threads that work, and of the whole process with collectors and compilers. */
    static long[] used(Thread[] threads) {
        ThreadMXBean times = ManagementFactory.getThreadMXBean();
        long own = 0;
        for (Thread thread : threads) {
            own += Math.max(0, times.getThreadCpuTime(thread.getId()));
        }
        OperatingSystemMXBean process = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return new long[] {own, process.getProcessCpuTime()};
    }

    static long collections() {
        return ManagementFactory.getGarbageCollectorMXBeans().stream().mapToLong(GarbageCollectorMXBean::getCollectionCount).sum();
    }

    /** Writes the operations so far into a file ten times a second, each time whole, until the time is over. */
    static void count(Warehouse[] warehouses, double seconds, Path file) throws Exception {
        Path fresh = file.resolveSibling(file.getFileName() + ".new");
        for (long until = System.nanoTime() + (long) (seconds * 1e9); System.nanoTime() < until; Thread.sleep(100)) {
            Files.writeString(fresh, "operations so far: " + total(warehouses) + "\n");
            Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE);
        }
    }

    static Warehouse[] warehouses(int count, AtomicLongArray histogram) {
        SplittableRandom random = new SplittableRandom(1);
        Item[] items = new Item[ITEMS];
        for (int i = 0; i < ITEMS; i++) {
            items[i] = new Item(random);
        }
        Warehouse[] warehouses = new Warehouse[count];
        for (int i = 0; i < count; i++) {
            warehouses[i] = new Warehouse(i, items, histogram);
        }
        return warehouses;
    }

    static Thread[] started(Warehouse[] warehouses) {
        Thread[] threads = new Thread[warehouses.length];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(warehouses[i], "warehouse-" + i);
            threads[i].start();
        }
        return threads;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 3 || arguments.length > 4) {
            System.err.println("usage: Jbb WAREHOUSES SECONDS_OF_WARM_UP SECONDS [FILE_OF_THE_COUNTER]");
            System.exit(2);
        }
        double warmUp = Double.parseDouble(arguments[1]), seconds = Double.parseDouble(arguments[2]);
        AtomicLongArray histogram = new AtomicLongArray(65);
        Warehouse[] warehouses = warehouses(Integer.parseInt(arguments[0]), histogram);
        Thread[] threads = started(warehouses);
        if (arguments.length == 4) {
            count(warehouses, seconds, Path.of(arguments[3]));
            System.exit(0);
        }
        Thread.sleep((long) (warmUp * 1000));
        long before = total(warehouses), collected = collections(), began = System.nanoTime();
        long[] usedBefore = used(threads);
        counting = true;
        Thread.sleep((long) (seconds * 1000));
        long operations = total(warehouses) - before;
        double took = (System.nanoTime() - began) / 1e9;
        long[] used = used(threads);
        collected = collections() - collected;
        stopped = true;
        for (Thread thread : threads) {
            thread.join();
        }
        long characters = 0;
        for (Warehouse warehouse : warehouses) {
            characters += warehouse.characters;
        }
        System.out.printf(Locale.ROOT, "operations: %.0f per second%n", operations / took);
        System.out.printf(Locale.ROOT, "work: %.0f operations per CPU second%n", operations * 1e9 / (used[1] - usedBefore[1]));
        System.out.printf(Locale.ROOT, "mutator: %.4f us of CPU per operation%n", (used[0] - usedBefore[0]) / 1e3 / operations);
        System.out.printf(Locale.ROOT, "collections: %.4f per million operations%n", collected * 1e6 / operations);
        System.out.printf(Locale.ROOT, "response: p50 %.1f us, p99 %.1f us, p99.9 %.1f us at most%n",
            microseconds(histogram, 0.5), microseconds(histogram, 0.99), microseconds(histogram, 0.999));
        System.out.printf(Locale.ROOT, "screens: %x%n", characters);
    }
}
