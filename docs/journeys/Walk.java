/** Follows references through 256M of the heap at random, and prints how many steps it took in so many seconds. */
public class Walk {
    public static void main(String[] arguments) {
        int length = 1 << 26;
        int[] next = new int[length];
        for (int at = 0; at < length; at++) {
            next[at] = (int) ((at * 1664525L + 1013904223L) & (length - 1));
        }
        System.out.println("ready");
        long until = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        long steps = 0;
        int at = 1;
        while (System.nanoTime() < until) {
            for (int step = 0; step < 1 << 16; step++) {
                at = next[at];
            }
            steps += 1 << 16;
        }
        System.out.println("steps: " + steps / Long.parseLong(arguments[0]) + " (" + at + ")");
    }
}
