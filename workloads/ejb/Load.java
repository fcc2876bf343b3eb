// Customers of the shop: each thread sends its requests one after the other over one connection. The same seed each time.
// Usage: Load port | fill FOLDER CUSTOMERS | load FOLDER CUSTOMERS CLIENTS REQUESTS

import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Locale;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

public final class Load {
    static final long SEED = 4711;
    /** A pause in the log of the JVM's collector, with its milliseconds. */
    static final Pattern PAUSE = Pattern.compile("GC\\(\\d+\\) Pause .* ([0-9.]+)ms$", Pattern.MULTILINE);

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "port":
                try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                    System.out.println(socket.getLocalPort());
                }
                break;
            case "fill":
                new Load(arguments).ask("/fill?number=" + arguments[2]);
                break;
            default:
                new Load(arguments).load(Integer.parseInt(arguments[2]), Integer.parseInt(arguments[3]), Integer.parseInt(arguments[4]));
        }
    }

    final Path folder;
    final String server;

    Load(String[] arguments) throws IOException {
        folder = Path.of(arguments[1]);
        server = "http://127.0.0.1:" + Files.readString(folder.resolve("port")).trim() + "/shop";
    }

    void load(int customers, int clients, int requests) throws Exception {
        long logged = log().length();
        long[] times = new long[clients * requests];
        Thread[] threads = new Thread[clients];
        Exception[] failed = new Exception[clients];
        long began = System.nanoTime();
        for (int client = 0; client < clients; client++) {
            int number = client;
            threads[client] = new Thread(() -> {
                try {
                    client(number, customers, times, number * requests, requests);
                } catch (Exception error) {
                    failed[number] = error;
                }
            });
            threads[client].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        double seconds = (System.nanoTime() - began) / 1e9;
        for (Exception error : failed) {
            if (error != null) {
                throw error;
            }
        }
        report(times, seconds, log().substring((int) logged));
    }

    void client(int number, int customers, long[] times, int from, int requests) throws IOException {
        SplittableRandom random = new SplittableRandom(SEED + number);
        for (int i = 0; i < requests; i++) {
            int kind = random.nextInt(10), customer = random.nextInt(customers), seed = random.nextInt(1 << 30);
            String path = kind < 4 ? "/order?number=" + customer + "&seed=" + seed
                : kind < 7 ? "/history?number=" + customer
                : "/browse?number=" + customer;
            long began = System.nanoTime();
            ask(path);
            times[from + i] = System.nanoTime() - began;
        }
    }

    void ask(String path) throws IOException {
        HttpURLConnection connection = (HttpURLConnection) new URL(server + path).openConnection();
        try (InputStream answer = connection.getInputStream()) {
            answer.readAllBytes();
        }
    }

    static void report(long[] times, double seconds, String log) {
        Arrays.sort(times);
        int pauses = 0;
        double paused = 0;
        for (Matcher found = PAUSE.matcher(log); found.find(); pauses++) {
            paused += Double.parseDouble(found.group(1));
        }
        System.out.printf(Locale.ROOT, "throughput: %.1f requests per second%n", times.length / seconds);
        System.out.printf(Locale.ROOT, "response: %.3f ms (nine of ten: %.3f ms)%n", milliseconds(times, 5), milliseconds(times, 9));
        System.out.printf(Locale.ROOT, "collections: %d, which paused for %.1f ms%n", pauses, paused);
    }

    static double milliseconds(long[] sorted, int tenths) {
        return sorted[(int) (sorted.length * (long) tenths / 10)] / 1e6;
    }

    /** What the server's collector has logged so far. */
    String log() throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            Optional<Path> newest = files.filter(file -> file.getFileName().toString().startsWith("gc-"))
                .max(Comparator.comparingLong(file -> file.toFile().lastModified()));
            return newest.isEmpty() ? "" : Files.readString(newest.get(), StandardCharsets.ISO_8859_1);
        }
    }
}
