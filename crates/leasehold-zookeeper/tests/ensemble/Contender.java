import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/** A client of Curator: reads commands, and answers each with a line. */
public class Contender {
    public static void main(String[] arguments) throws Exception {
        CuratorFramework client =
            CuratorFrameworkFactory.newClient(arguments[0], 8000, 8000, new RetryOneTime(100));
        client.start();
        InterProcessMutex mutex = new InterProcessMutex(client, arguments[1]);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("acquire")) {
                long millis = Long.parseLong(words[1]);
                System.out.println(mutex.acquire(millis, TimeUnit.MILLISECONDS) ? "held" : "busy");
            } else {
                mutex.release();
                System.out.println("free");
            }
        }
    }
}
