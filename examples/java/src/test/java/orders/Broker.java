package orders;

import java.io.BufferedReader;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import odradek.control.DefaultApi;
import odradek.control.client.ApiClient;

/** An odradek in a process of its own, for one test. */
final class Broker implements AutoCloseable {
    private static final Pattern CONTROL = Pattern.compile("odradek http on (\\S+) token (\\S+)");
    private static final Pattern READY = Pattern.compile("odradek ready on (\\S+)");

    private final Process process;
    /** The control API, generated from the OpenAPI document: see pom.xml. */
    final DefaultApi control;
    final String address;

    /** Starts one in memory, on free ports. ODRADEK is the command, "odradek" if it is not set. */
    Broker() throws IOException {
        String command = System.getenv().getOrDefault("ODRADEK", "odradek");
        List<String> words = new ArrayList<>(List.of(command.split(" ")));
        words.addAll(List.of("serve", "--in-memory", "--port", "0", "--http-port", "0"));
        process = new ProcessBuilder(words).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        BufferedReader lines = process.inputReader();
        Matcher controlled = said(CONTROL, lines.readLine());
        ApiClient client = new ApiClient();
        client.updateBaseUri(controlled.group(1));
        String authorization = "Bearer " + controlled.group(2);
        client.setRequestInterceptor(request -> request.header("Authorization", authorization));
        control = new DefaultApi(client);
        address = said(READY, lines.readLine()).group(1);
    }

    private static Matcher said(Pattern expected, String line) throws IOException {
        Matcher found = expected.matcher(line == null ? "" : line);
        if (!found.matches()) {
            throw new IOException("odradek has not started: " + line);
        }
        return found;
    }

    @Override
    public void close() throws InterruptedException {
        process.destroy();
        process.waitFor();
    }
}
