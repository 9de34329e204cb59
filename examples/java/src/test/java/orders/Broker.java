package orders;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** An odradek in a process of its own, for one test. */
final class Broker implements AutoCloseable {
    private static final Pattern CONTROL = Pattern.compile("odradek http on (\\S+) token (\\S+)");
    private static final Pattern READY = Pattern.compile("odradek ready on (\\S+)");

    private final HttpClient http = HttpClient.newHttpClient();
    private final Process process;
    private final String control;
    private final String token;
    final String address;

    /** Starts one in memory, on free ports. ODRADEK is the command, "odradek" if it is not set. */
    Broker() throws IOException {
        String command = System.getenv().getOrDefault("ODRADEK", "odradek");
        List<String> words = new ArrayList<>(List.of(command.split(" ")));
        words.addAll(List.of("serve", "--in-memory", "--port", "0", "--http-port", "0"));
        process = new ProcessBuilder(words).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        BufferedReader lines = process.inputReader();
        Matcher controlled = said(CONTROL, lines.readLine());
        control = controlled.group(1);
        token = controlled.group(2);
        address = said(READY, lines.readLine()).group(1);
    }

    private static Matcher said(Pattern expected, String line) throws IOException {
        Matcher found = expected.matcher(line == null ? "" : line);
        if (!found.matches()) {
            throw new IOException("odradek has not started: " + line);
        }
        return found;
    }

    /** Sends a request to the control API and returns its answer, which is JSON; an empty body says nothing. */
    String ask(String method, String path, String body) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(control + "/v1" + path))
                .header("Authorization", "Bearer " + token)
                .method(method, HttpRequest.BodyPublishers.ofString(body))
                .build();
        HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() != 200) {
            throw new IOException(method + " " + path + ": " + response.body());
        }
        return response.body();
    }

    @Override
    public void close() throws InterruptedException {
        process.destroy();
        process.waitFor();
    }
}
