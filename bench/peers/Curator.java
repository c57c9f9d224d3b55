import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/** Curator's InterProcessMutex as a subject of the benchmarks: obeys the orders of worker_process.rs, line by line. */
class Curator {
    static final int TTL_MILLIS = 30_000;

    static String key;
    static boolean apart;
    static int waiters;
    static long holdNanos, awayNanos;
    static CuratorFramework client;
    static List<InterProcessMutex> handles = new ArrayList<>();
    static List<String> sections = Collections.synchronizedList(new ArrayList<>());
    static ConcurrentHashMap<Integer, Long> pending = new ConcurrentHashMap<>();

    /** Arguments: PART SETTINGS KEY one|each WAITERS HOLD AWAY PORT, spans in microseconds. */
    public static void main(String[] arguments) throws Exception {
        key = arguments[2];
        apart = arguments[3].equals("each");
        waiters = Integer.parseInt(arguments[4]);
        holdNanos = Long.parseLong(arguments[5]) * 1000;
        awayNanos = Long.parseLong(arguments[6]) * 1000;
        client = CuratorFrameworkFactory.newClient(
                "127.0.0.1:" + arguments[7], TTL_MILLIS, 10_000, new RetryOneTime(1000));
        client.start();
        client.blockUntilConnected();
        for (int waiter = 0; waiter < waiters; waiter++) {
            handles.add(lock(apart ? key + "-" + (waiter + 1) : key));
        }
        // What proves that the lock is real. A lock is reentrant for its thread, so each is an object of its own.
        InterProcessMutex first = lock(key), second = lock(key);
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] order = line.split(" ");
            System.out.println(obey(order, first, second));
        }
        System.exit(0);
    }

    static InterProcessMutex lock(String name) {
        return new InterProcessMutex(client, "/curator/" + name);
    }

    static String obey(String[] order, InterProcessMutex first, InterProcessMutex second) throws Exception {
        switch (order[0]) {
            case "take":
                first.acquire();
                return "taken";
            case "second":
                if (!second.acquire(0, TimeUnit.SECONDS)) {
                    return "denied";
                }
                second.release();
                return "granted";
            case "give":
                first.release();
                return "given";
            case "start":
                for (int waiter = 0; waiter < waiters; waiter++) {
                    int own = waiter;
                    start(() -> contend(own));
                }
                return "started";
            case "mark":
                return Long.toString(System.nanoTime());
            case "finish":
                return finish();
            case "cycle-for":
                return cycle(Long.parseLong(order[1]) * 1_000_000);
            case "hold":
                return hold();
            case "report":
                return "{\"longest\": 0, \"least_left\": 0, \"lost\": 0}";
            default:
                throw new IllegalArgumentException(order[0]);
        }
    }

    interface Work {
        void run() throws Exception;
    }

    static Thread start(Work work) {
        var thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception error) {
                error.printStackTrace();
                System.exit(1);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    static void contend(int waiter) throws Exception {
        // Ten different pauses in any order, and then again: so all waiters pause for the same time in total.
        var pauses = new ArrayList<Long>();
        while (true) {
            long asked = System.nanoTime();
            pending.put(waiter, asked);
            handles.get(waiter).acquire();
            long acquired = System.nanoTime();
            pending.remove(waiter);
            pause(holdNanos);
            long releasing = System.nanoTime();
            sections.add("[" + waiter + "," + asked + "," + acquired + "," + releasing + "]");
            handles.get(waiter).release();
            if (pauses.isEmpty()) {
                for (int step = 0; step < 10; step++) {
                    pauses.add(awayNanos * (55 + 10 * step) / 100);
                }
                Collections.shuffle(pauses);
            }
            pause(pauses.remove(pauses.size() - 1));
        }
    }

    static void pause(long nanos) {
        long end = System.nanoTime() + nanos;
        for (long left = nanos; left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    static String finish() {
        List<String> done;
        synchronized (sections) {
            done = new ArrayList<>(sections);
        }
        return "{\"sections\": [" + String.join(",", done) + "], \"pending\": " + pending.values()
                + ", \"gave_up\": 0, \"why\": \"\"}";
    }

    /** Acquires and releases the lock of each handle again and again. */
    static String cycle(long span) throws Exception {
        List<Long> cycles = Collections.synchronizedList(new ArrayList<>());
        long began = System.nanoTime();
        var threads = new ArrayList<Thread>();
        for (InterProcessMutex handle : handles) {
            threads.add(start(() -> {
                for (long asked = began; asked - began < span; ) {
                    asked = System.nanoTime();
                    handle.acquire();
                    handle.release();
                    cycles.add(System.nanoTime() - asked);
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        double seconds = (System.nanoTime() - began) / 1e9;
        long[] sorted = cycles.stream().mapToLong(Long::longValue).sorted().toArray();
        return "{\"cycles\": " + sorted.length + ", \"seconds\": " + seconds
                + ", \"cycle_p50\": " + micros(sorted, 50) + ", \"cycle_p99\": " + micros(sorted, 99)
                + ", \"longest\": " + micros(sorted, 100) + ", \"failed\": 0, \"why\": \"\"}";
    }

    static double micros(long[] sorted, int percent) {
        if (sorted.length == 0) {
            return 0;
        }
        int rank = Math.max(1, (int) Math.ceil(sorted.length * percent / 100.0));
        return sorted[rank - 1] / 1000.0;
    }

    static String hold() throws Exception {
        double before = resident();
        for (InterProcessMutex handle : handles) {
            handle.acquire();
        }
        return "{\"resident_before\": " + before + ", \"resident\": " + resident() + "}";
    }

    /** The memory that lies in RAM now, in MiB. */
    static double resident() throws Exception {
        String line = Files.readAllLines(Path.of("/proc/self/status")).stream()
                .filter(text -> text.startsWith("VmRSS:")).findFirst().orElseThrow();
        return Double.parseDouble(Arrays.stream(line.split("\\D+")).reduce((a, b) -> b).orElseThrow()) / 1024;
    }
}
