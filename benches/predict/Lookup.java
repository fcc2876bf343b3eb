import java.util.HashMap;

/** Looks keys up in a hash map at random: boxed objects all over the heap. No flags are needed. */
public class Lookup {
    public static void main(String[] arguments) {
        int count = 2_000_000;
        HashMap<Long, Long> map = new HashMap<>();
        for (long key = 0; key < count; key++) {
            map.put(key * 2654435761L, key);
        }
        long state = 88172645463325252L, sum = 0;
        for (int lookup = 0; lookup < 25_000_000; lookup++) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
            Long found = map.get(Long.remainderUnsigned(state, count) * 2654435761L);
            sum += found == null ? 1 : found;
        }
        System.out.println(sum);
    }
}
