import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Kafka's command-line tools, one after the other in one JVM.
 *
 * A line names a class, what its standard input has, and its arguments. The line that answers it has the exit status, and what
 * came on standard output and standard error. Words are in base64, with a space between them.
 */
public class KafkaTools {
    /** Leaves a tool that has ended. Some tools catch it, complain of it and end again: only the first end counts. */
    private static final class Ended extends Error {}

    private static final List<Runnable> atExit = new ArrayList<>();
    private static Integer ended;

    public static void main(String[] unused) throws Exception {
        PrintStream answers = System.out;
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
        Exit.setExitProcedure(KafkaTools::end);
        Exit.setHaltProcedure(KafkaTools::end);
        Exit.setShutdownHookAdder((name, hook) -> atExit.add(hook));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            String[] words = Arrays.stream(line.split(" ", -1)).map(KafkaTools::decoded).toArray(String[]::new);
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            System.setIn(new ByteArrayInputStream(words[1].getBytes(StandardCharsets.UTF_8)));
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            int status = run(words[0], Arrays.copyOfRange(words, 2, words.length));
            answers.println(status + " " + encoded(out) + " " + encoded(err));
        }
    }

    private static int run(String tool, String[] arguments) throws Exception {
        ended = null;
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return ended == null ? 0 : ended;
        } catch (InvocationTargetException thrown) {
            if (ended != null) {
                return ended;
            }
            thrown.getCause().printStackTrace();
            return 1;
        } finally {
            atExit.forEach(Runnable::run);
            atExit.clear();
        }
    }

    private static void end(int status, String message) {
        if (ended == null) {
            ended = status;
            System.setOut(new PrintStream(PrintStream.nullOutputStream()));
            System.setErr(new PrintStream(PrintStream.nullOutputStream()));
        }
        throw new Ended();
    }

    private static String decoded(String word) {
        return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
    }

    private static String encoded(ByteArrayOutputStream bytes) {
        return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }
}
