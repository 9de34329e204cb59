import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/** Answers the questions on standard input as Kafka's StandardAuthorizer does. The lines are described in core.py. */
public class Authorizers {
    private record Context(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        @Override
        public String listenerName() {
            return "PLAINTEXT";
        }

        @Override
        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        @Override
        public int requestType() {
            return 3;
        }

        @Override
        public int requestVersion() {
            return 1;
        }

        @Override
        public String clientId() {
            return "client";
        }

        @Override
        public int correlationId() {
            return 1;
        }
    }

    private static StandardAuthorizer authorizer;
    private static Map<Uuid, StandardAcl> acls = new HashMap<>();

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t", -1);
            switch (fields[0]) {
                case "new" -> begin(fields);
                case "acl" -> acls.put(Uuid.randomUuid(), acl(fields));
                case "load" -> authorizer.loadSnapshot(acls);
                default -> out.println(answer(fields));
            }
        }
        out.flush();
    }

    private static void begin(String[] fields) {
        authorizer = new StandardAuthorizer();
        authorizer.configure(Map.of("super.users", fields[1], "allow.everyone.if.no.acl.found", fields[2]));
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        authorizer.completeInitialLoad();
        acls = new HashMap<>();
    }

    private static StandardAcl acl(String[] fields) {
        return new StandardAcl(
            ResourceType.valueOf(fields[1]),
            fields[2],
            PatternType.valueOf(fields[3]),
            fields[4],
            fields[5],
            AclOperation.valueOf(fields[6]),
            AclPermissionType.valueOf(fields[7]));
    }

    private static String answer(String[] fields) throws IOException {
        String[] principal = fields[1].split(":", 2);
        Context context =
            new Context(new KafkaPrincipal(principal[0], principal[1]), InetAddress.getByName(fields[2]));
        AclOperation operation = AclOperation.valueOf(fields[3]);
        ResourceType type = ResourceType.valueOf(fields[4]);
        try {
            AuthorizationResult result = fields[0].equals("any")
                ? authorizer.authorizeByResourceType(context, operation, type)
                : authorizer.authorize(context, List.of(
                    new Action(operation, new ResourcePattern(type, fields[5], PatternType.LITERAL), 1, false, false))).get(0);
            return result == AuthorizationResult.ALLOWED ? "1" : "0";
        } catch (RuntimeException failure) {
            return "! " + failure;
        }
    }
}
